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
}

// list calls each for every object of a kind, sequentially. It may pass an object twice.
func (r *stateReading) list(
	ctx context.Context, namespace string, kind schema.GroupKind, labels string, each func(*unstructured.Unstructured),
) error {
	return r.pages(ctx, namespace, kind, labels, func(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) (
		runtime.Object, error,
	) {
		return r.reader.Client.Resource(resource).Namespace(namespace).List(ctx, options)
	}, func(object runtime.Object) {
		if content, ok := object.(*unstructured.Unstructured); ok {
			each(content)
		}
	})
}

// listNames is list without the content of the objects.
func (r *stateReading) listNames(
	ctx context.Context, namespace string, kind schema.GroupKind, labels string, each func(name string),
) error {
	return r.pages(ctx, namespace, kind, labels, func(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) (
		runtime.Object, error,
	) {
		return r.reader.Metadata.Resource(resource).Namespace(namespace).List(ctx, options)
	}, func(object runtime.Object) {
		if about, err := meta.Accessor(object); err == nil {
			each(about.GetName())
		}
	})
}

type pageOf func(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) (runtime.Object, error)

func (r *stateReading) pages(
	ctx context.Context, namespace string, kind schema.GroupKind, labels string, page pageOf, each func(runtime.Object),
) error {
	mapping, err := r.mapping(plan.Key{GroupKind: kind})
	if meta.IsNoMatchError(err) && plan.IsGatewayAPI(kind) {
		return r.undefined(kind)
	}
	if err != nil {
		return err
	}
	resource := mapping.Resource
	err = pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if err := r.reader.Limiter.Wait(ctx); err != nil {
			return nil, err
		}
		return page(ctx, resource, options)
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
