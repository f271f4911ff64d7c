// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callerrights keeps the server from being a way round RBAC.
//
// The server reads and writes the cluster with an account of its own, which may do more than the people who tell it what to
// do. So whoever creates a rule, or changes its spec, must be allowed to list and watch what it selects, and whoever
// names a Secret must be allowed to get it. Whoever says where a destination or a repository leads must be allowed to
// read what the rules that are there already send to it. Whoever says what a catalog shows must be allowed to read that
// in its source. Whoever says what an environment is built from, or has it synced, must be allowed to write in its target what
// syncs write there. Whoever says what a pipeline sends, and where, must be allowed to list it and to use what the sinks use.
// Deletions, status and metadata are left to RBAC on our own kinds.
package callerrights

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/warning"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
)

// PluginName is the name of the plugin in flags.
const PluginName = "CallerRights"

// Plugin asks the authorizer whether the caller may do what an object makes the server do.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.Authorizer
	resolver   access.Resolver
	references References
	// kinds converts objects to what the rest of the program knows them as.
	kinds *runtime.Scheme
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
	_ wantsSources                      = &Plugin{}
)

// Register offers the plugin under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns a plugin that still has to be given its authorizer, its resolver and its references.
func New() *Plugin {
	kinds := runtime.NewScheme()
	install.Install(kinds)
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), kinds: kinds}
}

// wantsSources is a plugin that NewInitializer initializes.
type wantsSources interface {
	setSources(resolver access.Resolver, references References)
}

// sourcesInitializer gives plugins what they know the rules from.
type sourcesInitializer struct {
	resolver   access.Resolver
	references References
}

// NewInitializer lets the plugin resolve rules as the controllers do, and find those that are there.
func NewInitializer(resolver access.Resolver, references References) admission.PluginInitializer {
	return sourcesInitializer{resolver, references}
}

// Initialize gives plugin the sources when it wants them.
func (i sourcesInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsSources); ok {
		wants.setSources(i.resolver, i.references)
	}
}

// SetAuthorizer sets the authorizer that decides for the server's own requests too.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

func (p *Plugin) setSources(resolver access.Resolver, references References) {
	p.resolver, p.references = resolver, references
}

// ValidateInitialization says what the plugin has not been given.
func (p *Plugin) ValidateInitialization() error {
	if p.authorizer == nil {
		return errors.New(PluginName + " needs an authorizer")
	}
	if p.resolver == nil {
		return errors.New(PluginName + " needs a resolver")
	}
	if p.references == nil {
		return errors.New(PluginName + " needs references")
	}
	return nil
}

// Validate refuses an object, or a request at a subresource, that would make the server do what the caller may not. A rule that
// selects types which are not served is admitted with a warning. When what is referred to cannot be read, the client is asked to
// try again.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	wanted, err := p.wantedBy(ctx, a)
	if err != nil {
		return tryAgain(err)
	}
	refusals, err := p.refusals(ctx, a, wanted.permissions)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if wanted.refusal != nil {
		refusals = append(refusals, wanted.refusal)
	}
	if len(refusals) > 0 {
		return admission.NewForbidden(a, errors.Join(refusals...))
	}
	for _, text := range wanted.warnings {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// retryAfterSeconds is when a client should try again.
const retryAfterSeconds = 1

// tryAgain is for what may be found out later.
func tryAgain(err error) error {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("finding out what the caller must be allowed to do: %v", err))
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return status
}

// mostRefusals keeps an answer short. A shared destination may be fed from every namespace.
const mostRefusals = 10

// refusals say what of permissions the caller does not have; the first ones, when it is much.
func (p *Plugin) refusals(ctx context.Context, a admission.Attributes, permissions []access.Permission) ([]error, error) {
	missing, err := access.Missing(ctx, p.authorizer, a.GetUserInfo(), permissions, mostRefusals)
	if err != nil {
		return nil, err
	}
	var refusals []error
	for _, permission := range missing {
		refusals = append(refusals, permission.Refusal(a.GetUserInfo().GetName()))
	}
	return refusals, nil
}
