// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Schemas provides the schemas of types. Built-in kinds have theirs in client-go. Schemas of other kinds, and of
// built-in objects with fields that client-go does not know, come from the cluster. A kind without either has a deduced
// schema: its maps consist of fields, and its lists are fields.
type Schemas struct {
	builtIn, deduced managedfields.TypeConverter
	// cache is nil without a cluster.
	cache *schemaCache
}

// NewSchemas returns schemas that read the cluster's documents with client, each only when it has changed. With a nil
// client, kinds that are not built in have deduced schemas.
func NewSchemas(client openapi.ClientWithContext, passive clock.PassiveClock) *Schemas {
	s := &Schemas{builtIn: applyconfigurations.NewTypeConverter(scheme.Scheme), deduced: managedfields.NewDeducedTypeConverter()}
	if client != nil {
		s.cache = newSchemaCache(client, passive)
	}
	return s
}

// Typed converts objects of one type to typed values of a schema that all of them fit.
func (s *Schemas) Typed(ctx context.Context, objects ...*unstructured.Unstructured) ([]*typed.TypedValue, error) {
	gvk := objects[0].GroupVersionKind()
	for _, object := range objects[1:] {
		if other := object.GroupVersionKind(); other != gvk {
			return nil, fmt.Errorf("compare a %s with a %s: they are of different types", gvk, other)
		}
	}
	all, err := each(s.builtIn, objects)
	if err == nil {
		return all, nil
	}
	var tried managedfields.TypeConverter
	for _, find := range s.cache.lookups() {
		found, err := find(ctx, gvk.GroupVersion())
		if err != nil {
			return nil, fmt.Errorf("read the schema of %s of %s: %w", gvk.Kind, gvk.GroupVersion(), err)
		}
		if found == nil || found == tried {
			continue
		}
		if all, err = each(found, objects); err == nil {
			return all, nil
		}
		tried = found
	}
	if all, err = each(s.deduced, objects); err != nil {
		return nil, errShape(objects[0])
	}
	return all, nil
}

// each converts objects. Lists may have several items with the same key: API servers accept them with a warning.
func each(converter managedfields.TypeConverter, objects []*unstructured.Unstructured) ([]*typed.TypedValue, error) {
	all := make([]*typed.TypedValue, len(objects))
	for i, object := range objects {
		var err error
		if all[i], err = converter.ObjectToTyped(object, typed.AllowDuplicates); err != nil {
			return nil, err
		}
	}
	return all, nil
}
