// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// mapping returns the resource of an object. Workloads are read in the version of the catalog, so that both can be compared.
func (r *stateReading) mapping(key plan.Key) (*meta.RESTMapping, error) {
	var versions []string
	if version, ok := r.versions[key]; ok {
		versions = append(versions, version)
	}
	mapping, err := r.reader.Mapper.RESTMapping(key.GroupKind, versions...)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", key, err)
	}
	return mapping, nil
}

// get reads an object. It returns nil if the object does not exist.
func (r *stateReading) get(ctx context.Context, namespace string, key plan.Key) (*unstructured.Unstructured, error) {
	mapping, err := r.mapping(key)
	if meta.IsNoMatchError(err) && plan.IsCustomResource(key.GroupKind) {
		return nil, nil // Without a definition, no objects exist.
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return nil, nil // The kind is cluster-scoped, and the namespaced path does not exist.
	}
	return common(ctx, r, namespace, fmt.Sprintf("get %v %s", mapping.Resource, key.Name), func(ctx context.Context) (
		*unstructured.Unstructured, error,
	) {
		if err := r.reader.Limiter.Wait(ctx); err != nil {
			return nil, err
		}
		object, err := r.reader.Client.Resource(mapping.Resource).Namespace(namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if apierror.IsAbsent(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s in %s: %w", key, namespace, err)
		}
		return object, nil
	})
}

// common returns what read reads in a namespace. Outside of the target, that can be what another environment has read.
func common[V any](
	ctx context.Context, r *stateReading, namespace, key string, read func(ctx context.Context) (V, error),
) (V, error) {
	if namespace == r.state.Environment.Spec.TargetNamespace {
		return read(ctx)
	}
	return shared(ctx, &r.reader.shared, r.since, key+" "+namespace, read)
}

// list calls each for every object of a kind, sequentially. It may pass an object twice.
func (r *stateReading) list(
	ctx context.Context, namespace string, kind schema.GroupKind, labels string, each func(*unstructured.Unstructured),
) error {
	resource, err := r.resourceOf(kind)
	if err != nil || resource.Empty() {
		return err
	}
	objects, err := common(ctx, r, namespace, fmt.Sprintf("list %v %s", resource, labels), func(ctx context.Context) (
		[]*unstructured.Unstructured, error,
	) {
		var objects []*unstructured.Unstructured
		err := r.pages(ctx, namespace, resource, labels, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return r.reader.Client.Resource(resource).Namespace(namespace).List(ctx, options)
		}, func(object runtime.Object) {
			if content, ok := object.(*unstructured.Unstructured); ok {
				objects = append(objects, content)
			}
		})
		return objects, err
	})
	for _, object := range objects {
		each(object)
	}
	return err
}

// listNames is list without the content of the objects.
func (r *stateReading) listNames(
	ctx context.Context, namespace string, kind schema.GroupKind, labels string, each func(name string),
) error {
	resource, err := r.resourceOf(kind)
	if err != nil || resource.Empty() {
		return err
	}
	return r.pages(ctx, namespace, resource, labels, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return r.reader.Metadata.Resource(resource).Namespace(namespace).List(ctx, options)
	}, func(object runtime.Object) {
		if about, err := meta.Accessor(object); err == nil {
			each(about.GetName())
		}
	})
}

// resourceOf returns the resource of a kind to list, empty if the API server does not serve it and the environment has no objects of it.
func (r *stateReading) resourceOf(kind schema.GroupKind) (schema.GroupVersionResource, error) {
	mapping, err := r.mapping(plan.Key{GroupKind: kind})
	if meta.IsNoMatchError(err) && plan.IsGatewayAPI(kind) {
		return schema.GroupVersionResource{}, r.undefined(kind)
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// pages lists objects in pages. It may pass an object twice.
func (r *stateReading) pages(
	ctx context.Context, namespace string, resource schema.GroupVersionResource, labels string,
	page func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error), each func(runtime.Object),
) error {
	err := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if err := r.reader.Limiter.Wait(ctx); err != nil {
			return nil, err
		}
		return page(ctx, options)
	}).EachListItem(ctx, metav1.ListOptions{LabelSelector: labels}, func(object runtime.Object) error {
		each(object)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s in %s: %w", resource.GroupResource(), namespace, err)
	}
	return nil
}

// undefined returns an error if the API server does not serve a kind of which the environment has objects: what depends on those
// must not be removed because an API server has just started.
func (r *stateReading) undefined(kind schema.GroupKind) error {
	for key := range r.state.Base {
		if key.GroupKind == kind && r.state.Environment.Spec.Adapt.IngressHosts.Copied() {
			return fmt.Errorf("the API server does not serve %s now, of which the environment has %s: "+
				"install the definition, or set spec.adapt.ingressHosts.type to Omit", kind, key.Name)
		}
	}
	return nil
}
