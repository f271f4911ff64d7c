// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement refuses environments and catalogs that would get in each other's way.
//
// An environment that is created must be alone in its target, with the Branches that live in it, and away from what catalogs
// follow; its catalog must admit it, unless that does not exist yet; and a Branch must fit its base. A catalog must not follow what
// an environment builds. What cannot be changed later is judged once, and of changes the workloads that a Branch takes. What gets
// past that, because it is created at once at another replica, the controllers find out by the same rules.
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

// Objects lists what there is, in all namespaces. A list holds every write that was acknowledged before it was asked for, by
// whichever replica.
type Objects interface {
	Environments(ctx context.Context) ([]v1alpha1.Environment, error)
	AppCatalogs(ctx context.Context) ([]v1alpha1.AppCatalog, error)
}

// Plugin compares new environments and catalogs with those that are there.
type Plugin struct {
	*admission.Handler
	// own is the namespace of this server; empty: it has none.
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

// Register offers the plugin under its name.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns a plugin that still has to be given what it compares with.
func New() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// wantsObjects is a plugin that NewInitializer initializes.
type wantsObjects interface {
	setObjects(own string, objects Objects)
}

// objectsInitializer gives plugins what they compare with.
type objectsInitializer struct {
	own     string
	objects Objects
}

// NewInitializer lets the plugin list objects, and tells it the namespace of this server; empty: it has none.
func NewInitializer(own string, objects Objects) admission.PluginInitializer {
	return objectsInitializer{own, objects}
}

// Initialize gives plugin the objects when it wants them.
func (i objectsInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsObjects); ok {
		wants.setObjects(i.own, i.objects)
	}
}

func (p *Plugin) setObjects(own string, objects Objects) { p.own, p.objects = own, objects }

// SetExternalKubeClientSet lets the plugin ask for the labels of namespaces. No cache tells them: people create a namespace and
// what refers to its labels with one command.
func (p *Plugin) SetExternalKubeClientSet(cluster kubernetes.Interface) { p.cluster = cluster }

// ValidateInitialization says what the plugin has not been given.
func (p *Plugin) ValidateInitialization() error {
	if p.objects == nil {
		return errors.New(PluginName + " needs objects")
	}
	if p.cluster == nil {
		return errors.New(PluginName + " needs a client of the cluster")
	}
	return nil
}

// Validate refuses what gets in the way of something that is there. When that cannot be listed, the client is asked to try again.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	switch obj := a.GetObject().(type) {
	case *configbutler.Environment:
		old, _ := a.GetOldObject().(*configbutler.Environment)
		return p.judgeEnvironment(ctx, obj, old)
	case *configbutler.AppCatalog:
		if a.GetOperation() == admission.Create { // The source stays what it is.
			return p.judgeCatalog(ctx, obj)
		}
	}
	return nil
}

// retryAfterSeconds is when a client should try again.
const retryAfterSeconds = 1

// tryAgain is for what may be found out later.
func tryAgain(err error) error {
	status := apierrors.NewServiceUnavailable(fmt.Sprintf("finding out what else there is: %v", err))
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: retryAfterSeconds}
	return status
}
