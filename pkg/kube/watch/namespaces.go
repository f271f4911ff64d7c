// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// Namespace is what is known of a namespace.
type Namespace struct {
	Name   string
	UID    types.UID
	Labels labels.Set
	// Annotations holds those of this server's own group only.
	Annotations map[string]string
}

// NamespaceChange reports a namespace whose labels or annotations are new. Before is nil for one that was created,
// After for one that was deleted.
type NamespaceChange struct {
	Before, After *Namespace
}

// Namespaces follows the namespaces of the cluster, by their metadata.
type Namespaces struct {
	informer  cache.SharedIndexInformer
	listeners listeners[NamespaceChange]
}

// NewNamespaces returns Namespaces that know nothing until Run.
func NewNamespaces(client metadata.Interface) (*Namespaces, error) {
	n := &Namespaces{}
	n.informer = metadatainformer.NewFilteredMetadataInformer(client,
		schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := n.informer.SetTransform(trimNamespace); err != nil {
		return nil, fmt.Errorf("following namespaces: %w", err)
	}
	_, err := n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.changed(nil, namespaceOf(object)) },
		UpdateFunc: func(before, after any) { n.changed(namespaceOf(before), namespaceOf(after)) },
		DeleteFunc: func(object any) { n.changed(namespaceOf(object), nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("following namespaces: %w", err)
	}
	return n, nil
}

// trimNamespace keeps what Namespace holds.
func trimNamespace(object any) (any, error) {
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion,
		Labels: full.Labels, Annotations: ownAnnotations(full.Annotations),
	}}, nil
}

func ownAnnotations(annotations map[string]string) map[string]string {
	var own map[string]string
	for key, value := range annotations {
		if strings.HasPrefix(key, groupName+"/") {
			if own == nil {
				own = map[string]string{}
			}
			own[key] = value
		}
	}
	return own
}

// namespaceOf returns nil for what is no namespace.
func namespaceOf(object any) *Namespace {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	full, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil
	}
	return &Namespace{Name: full.Name, UID: full.UID, Labels: full.Labels, Annotations: full.Annotations}
}

// changed leaves out what Namespace does not show.
func (n *Namespaces) changed(before, after *Namespace) {
	if before != nil && after != nil &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) {
		return
	}
	n.listeners.notify(NamespaceChange{Before: before, After: after})
}

// Run follows the namespaces until ctx ends.
func (n *Namespaces) Run(ctx context.Context) {
	n.informer.RunWithContext(ctx)
}

// WaitForSync waits until all namespaces that exist are known and returns false if ctx ends before.
func (n *Namespaces) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), n.informer.HasSynced)
}

// Get looks one namespace up. The maps in it must not be changed.
func (n *Namespaces) Get(name string) (Namespace, bool) {
	object, found, err := n.informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return Namespace{}, false
	}
	return *namespaceOf(object), true
}

// Subscribe calls changed for every NamespaceChange, one at a time and in order for one namespace. It must return
// quickly and must not call Subscribe. Namespaces that exist already are not reported to those who subscribe after Run
// has begun.
func (n *Namespaces) Subscribe(changed func(NamespaceChange)) {
	n.listeners.add(changed)
}
