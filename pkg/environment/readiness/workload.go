// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// workload is what is kept of one.
type workload struct {
	namespace, name, resourceVersion string
	// writer is the environment that has written it. What none has written stays unknown.
	writer plan.Writer
	// trouble is why it is not ready, empty if it is.
	trouble string
}

var _ metav1.ObjectMetaAccessor = &workload{}

// GetObjectMeta is what caches know objects by.
func (w *workload) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: w.namespace, Name: w.name, ResourceVersion: w.resourceVersion}
}

// trim is a cache.TransformFunc that keeps what a workload holds.
func trim(object any) (any, error) {
	full, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	kept := &workload{namespace: full.GetNamespace(), name: full.GetName(), resourceVersion: full.GetResourceVersion()}
	if writer, ok := plan.WriterOf(full); ok {
		kept.writer, kept.trouble = writer, trouble(full)
	}
	return kept, nil
}

// byWriter is the name of an index.
const byWriter = "writer"

func indexers() cache.Indexers {
	return cache.Indexers{byWriter: func(object any) ([]string, error) {
		if of := workloadOf(object); of.isWritten() {
			return []string{string(of.writer.UID)}, nil
		}
		return nil, nil
	}}
}

// workloadOf returns nil for what is none.
func workloadOf(object any) *workload {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	of, _ := object.(*workload)
	return of
}

func (w *workload) isWritten() bool { return w != nil && w.writer.UID != "" }
