// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callerrights keeps the server from being a way round RBAC.
//
// The server reads the cluster with an account of its own, which may read more than the people who tell it what to
// read. So whoever creates a rule, or changes its spec, must be allowed to list and watch what it selects, and whoever
// names a Secret must be allowed to get it. Deletions, status and metadata are left to RBAC on our own kinds.
package callerrights

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"
)

// PluginName is the name of the plugin in flags.
const PluginName = "CallerRights"

// Plugin asks the authorizer whether the caller may do what an object makes the server do.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.Authorizer
	resolver   Resolver
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
	_ wantsResolver                     = &Plugin{}
)

// Register offers the plugin under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns a plugin that still has to be given its authorizer and its resolver.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// wantsResolver is a plugin that NewInitializer initializes.
type wantsResolver interface {
	setResolver(resolver Resolver)
}

// resolverInitializer gives plugins the resolver.
type resolverInitializer struct{ resolver Resolver }

// NewInitializer lets the plugin resolve rules as the controllers do.
func NewInitializer(resolver Resolver) admission.PluginInitializer {
	return resolverInitializer{resolver}
}

// Initialize gives plugin the resolver when it wants one.
func (i resolverInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsResolver); ok {
		wants.setResolver(i.resolver)
	}
}

// SetAuthorizer sets the authorizer that decides for the server's own requests too.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

func (p *Plugin) setResolver(resolver Resolver) { p.resolver = resolver }

// ValidateInitialization says what the plugin has not been given.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(PluginName + " needs an authorizer")
	}
	if p.resolver == nil {
		return errors.New(PluginName + " needs a resolver")
	}
	return nil
}

// Validate refuses an object that would make the server do what the caller may not. A rule that selects types which are
// not served is admitted with a warning.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || !changesSpec(a.GetObject(), a.GetOldObject()) {
		return nil
	}
	wanted := p.wantedBy(a.GetObject())
	var refusals []error
	for _, n := range wanted.needs {
		missing, err := p.missing(ctx, a, n)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("asking whether %q may %s: %w", a.GetUserInfo().GetName(), n, err))
		}
		if len(missing) > 0 {
			n.verbs = missing
			refusals = append(refusals, n.refusal(a.GetUserInfo().GetName()))
		}
	}
	if len(refusals) > 0 {
		return admission.NewForbidden(a, errors.Join(refusals...))
	}
	for _, text := range wanted.warnings {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// missing are the verbs of n that the caller is not allowed.
func (p *Plugin) missing(ctx context.Context, a admission.Attributes, n need) ([]string, error) {
	var missing []string
	for _, verb := range n.verbs {
		decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User:            a.GetUserInfo(),
			Verb:            verb,
			Namespace:       n.namespace,
			APIGroup:        n.group,
			APIVersion:      "*",
			Resource:        n.resource,
			Name:            n.name,
			ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			continue
		}
		if err != nil {
			return nil, err
		}
		missing = append(missing, verb)
	}
	return missing, nil
}
