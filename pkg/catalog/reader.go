// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// fewChanges is up to how many objects of a batch are read one by one. Beyond it, the namespace is listed, which is one
// request for 500 objects.
const fewChanges = 100

// reader reads workloads of a source.
type reader struct {
	client dynamic.Interface
	lister *watch.Lister
	// types are those that the cluster serves.
	types func() *watch.Snapshot
}

// everything reads the workloads of a namespace, and keeps those that are wanted.
func (r *reader) everything(ctx context.Context, namespace string, wanted func(*unstructured.Unstructured) bool) (sight, error) {
	types, missing := capture.Types(r.types())
	out := sight{objects: map[reference]*unstructured.Unstructured{}, whole: true, hidden: sets.New[v1alpha1.WorkloadKind]()}
	for kind, why := range missing {
		if why.Uncertain {
			out.hidden.Insert(kind)
		}
	}
	for _, resource := range types {
		_, err := r.lister.List(ctx, watch.Watch{Resource: resource, Namespace: namespace}, func(object *unstructured.Unstructured) error {
			if workload, ok := capture.ReferenceTo(object); ok && wanted(object) {
				out.objects[workload] = object
			}
			return nil
		})
		if err != nil {
			return sight{}, fmt.Errorf("read the source: %w", err)
		}
	}
	return out, nil
}

// changed reads the objects of a batch, or everything where that says more or is less work.
func (r *reader) changed(ctx context.Context, batch pending.Batch, wanted func(*unstructured.Unstructured) bool) (sight, error) {
	if batch.Resync || len(batch.Changes) > fewChanges {
		return r.everything(ctx, batch.Namespace, wanted)
	}
	types, _ := capture.Types(r.types())
	out := sight{objects: map[reference]*unstructured.Unstructured{}, at: sets.New[reference]()}
	for _, change := range batch.Changes {
		workload := referenceOf(change.Object)
		resource, known := types[workload.Kind]
		if !known {
			continue // What takes its place is found out by a comparison when the type is watched again.
		}
		if err := r.one(ctx, resource, batch.Namespace, workload, &out); err != nil {
			return sight{}, err
		}
	}
	return out, nil
}

// referenceOf is what a catalog calls a changed object.
func referenceOf(object pending.Object) reference {
	return reference{Kind: v1alpha1.WorkloadKind(object.Kind), Name: object.Name}
}

// one looks for one workload.
func (r *reader) one(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, workload reference, out *sight,
) error {
	object, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, workload.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read the source: %s %s/%s: %w", workload.Kind, namespace, workload.Name, err)
	default:
		out.objects[workload] = object
	}
	out.at.Insert(workload)
	return nil
}
