// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement rejects environments and catalogs whose namespaces conflict.
//
// A new environment must be the only one in its target, except for Branches that share it, and its target must not be
// the source of a catalog. Its catalog must admit it, unless the catalog does not exist yet, and a Branch must fit its
// base. A catalog's source must not be the target of an environment. Immutable fields are checked at creation, and
// added branch workloads at updates. Objects that are created concurrently at another replica can pass; the controllers
// detect them by the same rules.
package placement

import (
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// PluginName is the name of the plugin in flags.
const PluginName = "EnvironmentPlacement"

// Objects lists objects in all namespaces. A list must include every write that any replica acknowledged before the
// call.
type Objects interface {
	Environments(ctx context.Context) ([]v1alpha1.Environment, error)
	AppCatalogs(ctx context.Context) ([]v1alpha1.AppCatalog, error)
}

// Plugin compares new environments and catalogs with existing objects.
type Plugin struct {
	*admission.Handler
	// own is the namespace of this server, empty if there is none.
	own     string
	objects Objects
	cluster kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &Plugin{}
	_ initializer.WantsExternalKubeClientSet = &Plugin{}
	_ admission.InitializationValidator      = &Plugin{}
	_ wantsObjects                           = &Plugin{}
)

// Register registers the plugin under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns a plugin without its objects and its client, which initializers set.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// wantsObjects is implemented by plugins that NewInitializer initializes.
type wantsObjects interface {
	setObjects(own string, objects Objects)
}

// objectsInitializer sets the objects of plugins.
type objectsInitializer struct {
	own     string
	objects Objects
}

// NewInitializer returns an initializer that sets how the plugin lists objects, and the namespace of this server, empty
// if there is none.
func NewInitializer(own string, objects Objects) admission.PluginInitializer {
	return objectsInitializer{own, objects}
}

// Initialize implements admission.PluginInitializer.
func (i objectsInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsObjects); ok {
		wants.setObjects(i.own, i.objects)
	}
}

func (p *Plugin) setObjects(own string, objects Objects) { p.own, p.objects = own, objects }

// SetExternalKubeClientSet sets the client that reads the labels of namespaces. They are not cached: users create a
// namespace and objects that depend on its labels with one command.
func (p *Plugin) SetExternalKubeClientSet(cluster kubernetes.Interface) { p.cluster = cluster }

// ValidateInitialization returns an error if a dependency is missing.
func (p *Plugin) ValidateInitialization() error {
	if p.objects == nil {
		return errors.New(PluginName + " needs objects")
	}
	if p.cluster == nil {
		return errors.New(PluginName + " needs a client of the cluster")
	}
	return nil
}

// Validate rejects objects that conflict with existing ones. If those cannot be listed, the client is asked to retry.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch obj := a.GetObject().(type) {
	case *configbutler.Environment:
		old, _ := a.GetOldObject().(*configbutler.Environment)
		return p.validateEnvironment(ctx, obj, old)
	case *configbutler.AppCatalog:
		if a.GetOperation() == admission.Create { // The source stays what it is.
			return p.validateCatalog(ctx, obj)
		}
	}
	return nil
}

// retryAfterSeconds is the Retry-After of unavailable.
const retryAfterSeconds = 1

// unavailable returns a retryable error for a check that failed temporarily.
func unavailable(err error) error {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("finding out what else there is: %v", err))
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return status
}
