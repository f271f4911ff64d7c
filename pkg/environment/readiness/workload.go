// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// workload is the cached part of a workload.
type workload struct {
	namespace, name, resourceVersion string
	// writer is the environment that has written it, if any.
	writer plan.Writer
	// reason is why it is not ready, empty if it is.
	reason string
}

var _ metav1.ObjectMetaAccessor = &workload{}

// GetObjectMeta implements metav1.ObjectMetaAccessor for the informer's cache.
func (w *workload) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: w.namespace, Name: w.name, ResourceVersion: w.resourceVersion}
}

// trim is a cache.TransformFunc that reduces an object to a workload.
func trim(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	kept := &workload{namespace: full.GetNamespace(), name: full.GetName(), resourceVersion: full.GetResourceVersion()}
	if writer, ok := plan.WriterOf(full); ok {
		kept.writer, kept.reason = writer, notReadyReason(full)
	}
	return kept, nil
}

// byWriter is the index by the environment's UID.
const byWriter = "writer"

func indexers() cache.Indexers {
	return cache.Indexers{byWriter: func(object any) ([]string, error) {
		if of := workloadOf(object); of.isWritten() {
			return []string{string(of.writer.UID)}, nil
		}
		return nil, nil
	}}
}

// workloadOf returns the cached workload, nil for other objects.
func workloadOf(object any) *workload {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	of, _ := object.(*workload)
	return of
}

func (w *workload) isWritten() bool { return w != nil && w.writer.UID != "" }
