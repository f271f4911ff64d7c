// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const (
	// fewObjects is how many objects of a type and namespace are read one by one. More are listed.
	fewObjects = 3
	// livePage is the number of objects that are listed at once.
	livePage = 500
)

// identify returns how an object of Git is read and written in the cluster. It fails with a NoMatch error if the cluster does not serve its
// type.
func (s *session) identify(object *unstructured.Unstructured) (restore.Object, error) {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return restore.Object{}, err
	}
	return restore.Object{Kind: kind, Resource: mapping.Resource, Namespace: object.GetNamespace(), Name: object.GetName()}, nil
}

// place is where objects of a type are.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

// live reads objects of the cluster.
func (s *session) live(ctx context.Context, objects []restore.Object) (map[restore.Object]*unstructured.Unstructured, error) {
	places := map[place][]restore.Object{}
	for _, o := range objects {
		at := place{o.Resource, o.Namespace}
		places[at] = append(places[at], o)
	}
	out := make(map[restore.Object]*unstructured.Unstructured, len(objects))
	for at, wanted := range places {
		in := s.in(at)
		if len(wanted) > fewObjects {
			found, err := list(ctx, in)
			if err == nil {
				for _, o := range wanted {
					if object := found[o.Name]; object != nil {
						out[o] = object
					}
				}
				continue
			}
			if !apierrors.IsForbidden(err) {
				return nil, fmt.Errorf("failed to list %s: %w", at.resource.GroupResource(), err)
			}
		}
		for _, o := range wanted {
			object, err := in.Get(ctx, o.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("failed to read %s: %w", o, err)
			}
			out[o] = object
		}
	}
	return out, nil
}

func (s *session) in(at place) dynamic.ResourceInterface {
	if at.namespace == "" {
		return s.dynamic.Resource(at.resource)
	}
	return s.dynamic.Resource(at.resource).Namespace(at.namespace)
}

// list returns all objects of a place by name.
func list(ctx context.Context, in dynamic.ResourceInterface) (map[string]*unstructured.Unstructured, error) {
	found := map[string]*unstructured.Unstructured{}
	options := metav1.ListOptions{Limit: livePage}
	for {
		page, err := in.List(ctx, options)
		if apierrors.IsResourceExpired(err) && options.Continue != "" {
			options, found = metav1.ListOptions{}, map[string]*unstructured.Unstructured{} // All at once.
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			found[page.Items[i].GetName()] = &page.Items[i]
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return found, nil
		}
	}
}

// compared is an object at two times.
type compared struct {
	restore.Object
	// then and now are contents, nil if the object did not exist. live is now with all its fields, nil if now is of Git.
	then, now, live *unstructured.Unstructured
	// ignored are fields that then says nothing about.
	ignored ignore.Rules
	// edited is set if then was made from now.
	edited bool
}

// withLive returns each object of either state with its content in the first one and with the object in the cluster. It reports types
// that the cluster does not serve to unserved.
func (s *session) withLive(
	ctx context.Context, then, present map[objectKey]*unstructured.Unstructured, unserved func(*unstructured.Unstructured, error),
) ([]compared, error) {
	var out []compared
	var objects []restore.Object
	for _, state := range []map[objectKey]*unstructured.Unstructured{then, present} {
		for key, object := range state {
			if _, known := then[key]; known && then[key] != object {
				continue
			}
			id, err := s.identify(object)
			if meta.IsNoMatchError(err) {
				unserved(object, err)
				continue
			}
			if err != nil {
				return nil, err
			}
			out, objects = append(out, compared{Object: id, then: then[key]}), append(objects, id)
		}
	}
	live, err := s.live(ctx, objects)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].live = live[out[i].Object]; out[i].live == nil {
			continue
		}
		if out[i].now, err = planner.Content(out[i].live); err != nil {
			return nil, err
		}
	}
	return out, nil
}
