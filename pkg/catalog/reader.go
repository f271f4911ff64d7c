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

// maxGets is the maximum number of objects of a batch that are read with one request each. For more objects the namespace is listed, which
// takes one request for 500 objects.
const maxGets = 100

// reader reads the workloads of source namespaces.
type reader struct {
	client dynamic.Interface
	lister *watch.Lister
	// types returns the types that the cluster serves.
	types func() *watch.Snapshot
}

// readAll reads all workloads of a namespace, and returns those for which wanted returns true.
func (r *reader) readAll(ctx context.Context, namespace string, wanted func(*unstructured.Unstructured) bool) (sourceState, error) {
	types, missing := capture.Types(r.types())
	out := sourceState{objects: map[reference]*unstructured.Unstructured{}, complete: true, unknown: sets.New[v1alpha1.WorkloadKind]()}
	for kind, why := range missing {
		if why.Uncertain {
			out.unknown.Insert(kind)
		}
	}
	for _, resource := range types {
		in := watch.Watch{Resource: resource, Namespace: namespace}
		_, err := r.lister.List(ctx, in, func(object *unstructured.Unstructured, _ string) error {
			if workload, ok := capture.ReferenceTo(object); ok && wanted(object) {
				out.objects[workload] = object
			}
			return nil
		})
		if err != nil {
			return sourceState{}, fmt.Errorf("read the source: %w", err)
		}
	}
	return out, nil
}

// readBatch reads the objects of a batch. It reads all workloads of the namespace if the batch may be incomplete or is too large.
func (r *reader) readBatch(ctx context.Context, batch pending.Batch, wanted func(*unstructured.Unstructured) bool) (sourceState, error) {
	if batch.Resync || len(batch.Changes) > maxGets {
		return r.readAll(ctx, batch.Namespace, wanted)
	}
	types, _ := capture.Types(r.types())
	out := sourceState{objects: map[reference]*unstructured.Unstructured{}, read: sets.New[reference]()}
	for _, change := range batch.Changes {
		workload := referenceOf(change.Object)
		resource, known := types[workload.Kind]
		if !known {
			continue // When the type is served and watched again, the namespace is compared.
		}
		if err := r.readOne(ctx, resource, batch.Namespace, workload, &out); err != nil {
			return sourceState{}, err
		}
	}
	return out, nil
}

// referenceOf returns the reference of a changed object.
func referenceOf(object pending.Object) reference {
	return reference{Kind: v1alpha1.WorkloadKind(object.Kind), Name: object.Name}
}

// readOne reads one workload, and adds it to out.
func (r *reader) readOne(
	ctx context.Context, resource schema.GroupVersionResource, namespace string, workload reference, out *sourceState,
) error {
	object, err := r.client.Resource(resource).Namespace(namespace).Get(ctx, workload.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read the source: %s %s/%s: %w", workload.Kind, namespace, workload.Name, err)
	default:
		out.objects[workload] = object
	}
	out.read.Insert(workload)
	return nil
}
