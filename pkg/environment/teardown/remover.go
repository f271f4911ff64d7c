// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Remover deletes what environments have written. It is safe for concurrent use.
type Remover struct {
	// Client reads metadata and deletes objects. Their content is never read.
	Client metadata.Interface
	Mapper watch.KindMapper
	// Discovery lists the types that a namespace can contain.
	Discovery Discovery
	// Limiter limits all requests for objects.
	Limiter flowcontrol.RateLimiter
	// Concurrency is the number of concurrent requests for an environment, at least 1.
	Concurrency int
	Clock       clock.PassiveClock
	// Kept is called with the reason why a target that an environment has created is not deleted. It may be nil.
	Kept func(e *v1alpha1.Environment, why string)
}

// Discovery lists the types that a cluster serves.
type Discovery interface {
	// ServerPreferredNamespacedResourcesWithContext returns all namespaced types. If those of some groups are unknown, it returns the others
	// and a *discovery.ErrGroupDiscoveryFailed.
	ServerPreferredNamespacedResourcesWithContext(ctx context.Context) ([]*metav1.APIResourceList, error)
}

var _ Discovery = &discovery.DiscoveryClient{}

// Remove deletes what an environment has written, according to its deletionPolicy. It returns a sentence for each remaining
// object; the caller repeats the call until there is none. Custom are the kinds of custom resources that the environment
// may have written. Objects that the server is no longer permitted to list stay.
func (r *Remover) Remove(ctx context.Context, e *v1alpha1.Environment, custom ...schema.GroupKind) (left []string, err error) {
	if e.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
		return nil, nil
	}
	target, err := r.target(ctx, e)
	if err == nil && target != nil {
		left, err = r.deleteObjects(ctx, e, custom)
	}
	if err == nil && target != nil && len(left) == 0 && plan.Owns(e, target) {
		left, err = r.deleteNamespace(ctx, e, target)
	}
	if err != nil {
		return left, fmt.Errorf("remove what environment %s/%s wrote: %w", e.Namespace, e.Name, err)
	}
	return left, nil
}

// target returns the namespace, nil if it does not exist or is terminating, which deletes all its objects.
func (r *Remover) target(ctx context.Context, e *v1alpha1.Environment) (*metav1.PartialObjectMetadata, error) {
	if err := r.Limiter.Wait(ctx); err != nil {
		return nil, err
	}
	namespace, err := r.Client.Resource(namespaces).Get(ctx, e.Spec.TargetNamespace, metav1.GetOptions{})
	switch {
	case apierror.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for namespace %s: %w", e.Spec.TargetNamespace, err)
	case namespace.DeletionTimestamp != nil:
		return nil, nil
	}
	return namespace, nil
}
