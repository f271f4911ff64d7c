// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// maxAttempts limits the attempts to delete an object that is modified concurrently. It then remains for the next call.
const maxAttempts = 5

// deleteObjects deletes the environment's objects and returns what remains.
func (r *Remover) deleteObjects(ctx context.Context, e *v1alpha1.Environment, custom []schema.GroupKind) (left []string, err error) {
	var errs []error
	var kinds []schema.GroupKind
	for _, kind := range slices.Backward(slices.Concat(custom, plan.Kinds())) {
		some, err := r.deleteAll(ctx, e, kind)
		if some {
			kinds = append(kinds, kind)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		objects, err := r.objectsOf(ctx, e, kind)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			left = append(left, kind.Kind+" "+object.Name+" "+deletionState(object))
		}
	}
	return left, nil
}

// deletionState describes why an object still exists.
func deletionState(object *metav1.PartialObjectMetadata) string {
	waiting := slices.DeleteFunc(slices.Clone(object.Finalizers), func(name string) bool { return name == metav1.FinalizerDeleteDependents })
	switch {
	case object.DeletionTimestamp == nil:
		return "is not deleted yet"
	case len(waiting) > 0:
		return "is being deleted, and has the finalizers " + strings.Join(waiting, ", ")
	}
	return "is being deleted, with what it has started"
}

// deleteAll deletes the environment's objects of a kind, and reports whether there were any.
func (r *Remover) deleteAll(ctx context.Context, e *v1alpha1.Environment, kind schema.GroupKind) (some bool, err error) {
	objects, err := r.objectsOf(ctx, e, kind)
	if err != nil || len(objects) == 0 {
		return false, err
	}
	client, err := r.resource(e, kind)
	if client == nil || err != nil {
		return false, err
	}
	errs := make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(max(r.Concurrency, 1))
	for i, object := range objects {
		group.Go(func() error {
			if err := r.delete(ctx, e, client, kind, object); err != nil {
				errs[i] = fmt.Errorf("delete %s %s: %w", kind.Kind, object.Name, err)
			}
			return nil
		})
	}
	return true, errors.Join(group.Wait(), errors.Join(errs...))
}

// delete deletes an object on condition that the environment owns it.
func (r *Remover) delete(
	ctx context.Context, e *v1alpha1.Environment, client metadata.ResourceInterface,
	kind schema.GroupKind, object *metav1.PartialObjectMetadata,
) error {
	for range maxAttempts {
		if object.DeletionTimestamp != nil || !plan.Owns(e, object) {
			return nil
		}
		if err := r.Limiter.Wait(ctx); err != nil {
			return err
		}
		err := client.Delete(ctx, object.Name, preconditions(object, propagationOf(kind)))
		if !apierrors.IsConflict(err) {
			return failure(kind, err)
		}
		if err := r.Limiter.Wait(ctx); err != nil {
			return err
		}
		if object, err = client.Get(ctx, object.Name, metav1.GetOptions{}); err != nil {
			return failure(kind, err)
		}
	}
	return nil
}

// preconditions returns the options to delete exactly this version of an object.
func preconditions(object *metav1.PartialObjectMetadata, how metav1.DeletionPropagation) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(object.UID), ResourceVersion: ptr.To(object.ResourceVersion)},
		PropagationPolicy: ptr.To(how),
	}
}

func propagationOf(kind schema.GroupKind) metav1.DeletionPropagation {
	if resource, ok := v1alpha1.WorkloadResources()[v1alpha1.WorkloadKind(kind.Kind)]; ok && resource.Group == kind.Group {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}

// failure returns the error of a deletion, nil if the object does not exist. A response about a Secret may quote it.
func failure(kind schema.GroupKind, err error) error {
	switch {
	case apierror.IsAbsent(err):
		return nil
	case kind == secrets:
		return apierror.RedactSecret(err)
	}
	return err
}

// objectsOf returns the environment's objects of a kind, none if the API server does not serve it.
func (r *Remover) objectsOf(ctx context.Context, e *v1alpha1.Environment, kind schema.GroupKind) ([]*metav1.PartialObjectMetadata, error) {
	client, err := r.resource(e, kind)
	if client == nil || err != nil {
		return nil, err
	}
	var objects []*metav1.PartialObjectMetadata
	err = pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if err := r.Limiter.Wait(ctx); err != nil {
			return nil, err
		}
		return client.List(ctx, options)
	}).EachListItem(ctx, metav1.ListOptions{LabelSelector: plan.Selector(e).String()}, func(item runtime.Object) error {
		if object, ok := item.(*metav1.PartialObjectMetadata); ok && plan.Owns(e, object) {
			objects = append(objects, object)
		}
		return nil
	})
	if err != nil && !apierror.IsAbsent(err) && !(plan.IsOnlyIncluded(kind) && apierrors.IsForbidden(err)) {
		return nil, fmt.Errorf("list objects of the kind %s in %s: %w", kind, e.Spec.TargetNamespace, err)
	}
	return objects, nil
}

// resource returns the client for a kind in the target, nil if the API server does not serve the kind, or serves it
// cluster-scoped.
func (r *Remover) resource(e *v1alpha1.Environment, kind schema.GroupKind) (metadata.ResourceInterface, error) {
	mapping, err := r.Mapper.RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", kind, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, nil
	}
	return r.Client.Resource(mapping.Resource).Namespace(e.Spec.TargetNamespace), nil
}

var secrets = schema.GroupKind{Kind: "Secret"}
