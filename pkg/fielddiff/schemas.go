// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fielddiff

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

// Schemas are the schemas of types. Kinds that are built into Kubernetes have theirs in client-go; the cluster is asked for
// those of other kinds, and for those of objects that have fields which client-go does not know yet. What has no schema
// in either has one deduced: its maps are made of fields, and its lists are fields.
type Schemas struct {
	builtIn, deduced managedfields.TypeConverter
	// cluster is nil where no cluster can be asked.
	cluster *cluster
}

// NewSchemas returns schemas that ask the cluster by the client, at most once for each document that it serves while the
// document stays the same. Without a client, kinds that are not built in have deduced schemas.
func NewSchemas(client openapi.ClientWithContext, passive clock.PassiveClock) *Schemas {
	s := &Schemas{builtIn: applyconfigurations.NewTypeConverter(scheme.Scheme), deduced: managedfields.NewDeducedTypeConverter()}
	if client != nil {
		s.cluster = newCluster(client, passive)
	}
	return s
}

// typed returns two objects of one type with the schema that both fit.
func (s *Schemas) typed(ctx context.Context, before, after *unstructured.Unstructured) (b, a *typed.TypedValue, err error) {
	if b, a, err = pair(s.builtIn, before, after); err == nil {
		return b, a, nil
	}
	gvk := before.GroupVersionKind()
	var tried managedfields.TypeConverter
	for _, find := range s.cluster.finders() {
		found, err := find(ctx, gvk.GroupVersion())
		if err != nil {
			return nil, nil, fmt.Errorf("read the schema of %s of %s: %w", gvk.Kind, gvk.GroupVersion(), err)
		}
		if found == nil || found == tried {
			continue
		}
		if b, a, err = pair(found, before, after); err == nil {
			return b, a, nil
		}
		tried = found
	}
	if b, a, err = pair(s.deduced, before, after); err != nil {
		return nil, nil, errShape(before)
	}
	return b, a, nil
}

// pair types two objects. Lists may have two items of one key: API servers let them pass with a warning.
func pair(converter managedfields.TypeConverter, before, after *unstructured.Unstructured) (b, a *typed.TypedValue, err error) {
	if b, err = converter.ObjectToTyped(before, typed.AllowDuplicates); err != nil {
		return nil, nil, err
	}
	a, err = converter.ObjectToTyped(after, typed.AllowDuplicates)
	return b, a, err
}
