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

// Namespace is the metadata of a namespace.
type Namespace struct {
	Name   string
	UID    types.UID
	Labels labels.Set
	// Annotations are those of this server's own API group.
	Annotations map[string]string
}

// NamespaceChange is a change of a namespace's labels or annotations. Before is nil if the namespace was created, After if it
// was deleted.
type NamespaceChange struct {
	Before, After *Namespace
}

// Namespaces watches the metadata of the cluster's namespaces.
type Namespaces struct {
	informer  cache.SharedIndexInformer
	listeners listeners[NamespaceChange]
}

// NewNamespaces returns Namespaces that are empty until Run.
func NewNamespaces(client metadata.Interface) (*Namespaces, error) {
	n := &Namespaces{}
	n.informer = metadatainformer.NewFilteredMetadataInformer(client,
		schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
		metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := n.informer.SetTransform(trimNamespace); err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	_, err := n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.changed(nil, namespaceOf(object)) },
		UpdateFunc: func(before, after any) { n.changed(namespaceOf(before), namespaceOf(after)) },
		DeleteFunc: func(object any) { n.changed(namespaceOf(object), nil) },
	})
	if err != nil {
		return nil, fmt.Errorf("watching namespaces: %w", err)
	}
	return n, nil
}

// trimNamespace removes everything that Namespace does not contain.
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

// namespaceOf returns the Namespace of an informer's object, nil if it is something else.
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

// changed publishes a change, unless Namespace is the same before and after.
func (n *Namespaces) changed(before, after *Namespace) {
	if before != nil && after != nil &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) {
		return
	}
	n.listeners.notify(NamespaceChange{Before: before, After: after})
}

// Run watches the namespaces until ctx ends.
func (n *Namespaces) Run(ctx context.Context) {
	n.informer.RunWithContext(ctx)
}

// WaitForSync waits until all existing namespaces have been listed, and returns false if ctx ends before.
func (n *Namespaces) WaitForSync(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), n.informer.HasSynced)
}

// Get returns a namespace by its name. Its maps must not be changed.
func (n *Namespaces) Get(name string) (Namespace, bool) {
	object, found, err := n.informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return Namespace{}, false
	}
	return *namespaceOf(object), true
}

// Subscribe calls changed for every NamespaceChange, sequentially and, for each namespace, in order. changed must return
// quickly and must not call Subscribe. If Run has begun, existing namespaces are not reported.
func (n *Namespaces) Subscribe(changed func(NamespaceChange)) {
	n.listeners.add(changed)
}
