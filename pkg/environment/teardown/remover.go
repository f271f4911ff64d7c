// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Remover removes what environments wrote. It may be used concurrently.
type Remover struct {
	// Client reads and deletes objects. Their content is never read.
	Client metadata.Interface
	Mapper watch.KindMapper
	// Types are asked for what can be in a namespace.
	Types Types
	// Limiter is waited for before each request for objects.
	Limiter flowcontrol.RateLimiter
	// Concurrency is how many requests an environment has made at once, at least 1.
	Concurrency int
	// Stays hears why a target that an environment has created is not deleted with it. It may be nil.
	Stays func(e *v1alpha1.Environment, why string)
}

// Types are what a cluster serves.
type Types interface {
	// ServerPreferredNamespacedResourcesWithContext returns the types whose objects are in namespaces, and an error unless it knows
	// all of them.
	ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error)
}

var _ Types = &discovery.DiscoveryClient{}

// Remove removes what an environment that is being deleted wrote, as its deletionPolicy says. It returns what is still there, a
// sentence for each; if there are none, and no error, everything is as it is to be. Until then, it is to be called again. Custom are
// the kinds of custom resources that the environment may have written: those that the server may not list any more stay.
func (r *Remover) Remove(ctx context.Context, e *v1alpha1.Environment, custom ...schema.GroupKind) (left []string, err error) {
	if e.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
		return nil, nil
	}
	target, err := r.target(ctx, e)
	if err == nil && target != nil {
		left, err = r.empty(ctx, e, custom)
	}
	if err == nil && target != nil && len(left) == 0 && plan.Owns(e, target) {
		left, err = r.namespace(ctx, e, target)
	}
	if err != nil {
		return left, fmt.Errorf("remove what environment %s/%s wrote: %w", e.Namespace, e.Name, err)
	}
	return left, nil
}

// target returns the namespace, nil if it is not there, or going: then all that is in it goes.
func (r *Remover) target(ctx context.Context, e *v1alpha1.Environment) (*metav1.PartialObjectMetadata, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	namespace, err := r.Client.Resource(namespaces).Get(ctx, e.Spec.TargetNamespace, metav1.GetOptions{})
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for namespace %s: %w", e.Spec.TargetNamespace, err)
	case namespace.DeletionTimestamp != nil:
		return nil, nil
	}
	return namespace, nil
}

// isAbsent says whether an API server has answered that there is no such object, or type. A proxy in front of it says 404 as
// well.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
