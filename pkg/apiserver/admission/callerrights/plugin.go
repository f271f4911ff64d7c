// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package callerrights prevents privilege escalation through the server's account.
//
// The server accesses the cluster with its own account, which can have more permissions than the users who configure
// it. Creating an object or changing its spec therefore requires the permissions for what the server does as a result:
//
//   - a rule: to list and watch the objects that it selects;
//   - a reference to a Secret: to get the Secret;
//   - a destination or a repository: to read what existing rules send there;
//   - a catalog: to read in its source what it shows;
//   - an environment, or a request to sync it: to write in its target what syncs write there;
//   - a pipeline: to list what it sends, and to use what its sinks use;
//   - a notification sink, or a request to test it: to list what it notifies of, and to use what its receiver uses.
//
// Deletions, status and metadata only depend on RBAC for the kinds themselves.
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

// Plugin checks that the caller is allowed to do what an object makes the server do.
type Plugin struct {
	*admission.Handler
	authorizer authorizer.Authorizer
	resolver   access.Resolver
	references References
	// namespace is the namespace of the server.
	namespace string
	// kinds converts objects to v1alpha1.
	kinds *runtime.Scheme
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ initializer.WantsAuthorizer       = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
	_ wantsSources                      = &Plugin{}
)

// Register registers the plugin under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns a plugin without its authorizer, resolver and references, which initializers set.
func New() *Plugin {
	kinds := runtime.NewScheme()
	install.Install(kinds)
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), kinds: kinds}
}

// wantsSources is implemented by plugins that NewInitializer initializes.
type wantsSources interface {
	setSources(sources)
}

// sources are what a plugin reads.
type sources struct {
	resolver   access.Resolver
	references References
	namespace  string
}

// sourcesInitializer sets the sources of plugins.
type sourcesInitializer struct{ sources }

// NewInitializer returns an initializer that lets the plugin resolve rules as controllers do, and list existing ones.
// namespace is that of the server.
func NewInitializer(resolver access.Resolver, references References, namespace string) admission.PluginInitializer {
	return sourcesInitializer{sources{resolver, references, namespace}}
}

// Initialize implements admission.PluginInitializer.
func (i sourcesInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsSources); ok {
		wants.setSources(i.sources)
	}
}

// SetAuthorizer sets the authorizer, which is also that of the server's requests.
func (p *Plugin) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

func (p *Plugin) setSources(from sources) {
	p.resolver, p.references, p.namespace = from.resolver, from.references, from.namespace
}

// ValidateInitialization returns an error if a dependency is missing.
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

// Validate rejects an object, or a request at a subresource, that would make the server do what the caller is not
// allowed to do. A rule that selects types that are not served is admitted with a warning. If a referenced object
// cannot be read, the client is asked to retry.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	requirements, err := p.requirementsOf(ctx, a)
	if err != nil {
		return unavailable(err)
	}
	missing, err := access.Missing(ctx, p.authorizer, a.GetUserInfo(), requirements.permissions, maxRefusals)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	refusal := errors.Join(requirements.refusal, access.Refusal(a.GetUserInfo().GetName(), missing))
	if refusal != nil {
		return admission.NewForbidden(a, refusal)
	}
	for _, text := range requirements.warnings {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// retryAfterSeconds is the Retry-After of unavailable.
const retryAfterSeconds = 1

// unavailable returns a retryable error for a check that failed temporarily.
func unavailable(err error) error {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("finding out what the caller must be allowed to do: %v", err))
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return status
}

// maxRefusals limits the length of an error: a shared destination can have rules in every namespace.
const maxRefusals = 10
