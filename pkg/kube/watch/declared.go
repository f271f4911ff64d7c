// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

const (
	// expectedTimeout bounds how long discovery is repeated until it lists a type whose CustomResourceDefinition or
	// APIService has been created, or no longer lists one whose object has been deleted.
	expectedTimeout = 30 * time.Second
	// firstRetryDelay and maxRetryDelay bound the pauses in between, which double.
	firstRetryDelay = 250 * time.Millisecond
	maxRetryDelay   = 4 * time.Second
	// finalDelay is the time from the last event until discovery runs once more: the metadata of a definition does not
	// show a change of its served versions, so there is no expected result to wait for.
	finalDelay = 2 * time.Second
)

// declarations watches the metadata of CustomResourceDefinitions and APIServices, whose creation and deletion changes the
// served types. It records what discovery should return after the latest events until it does.
type declarations struct {
	definitions cache.SharedIndexInformer
	services    cache.SharedIndexInformer

	mutex    sync.Mutex
	expected map[declared]expectedState
	delay    time.Duration
	// finalAt is when discovery runs once more after the last event.
	finalAt time.Time
}

// declared is the entry of discovery that one object adds: a resource (for a CustomResourceDefinition) or a group version
// (for an APIService; resource is empty).
type declared struct {
	group, version, resource string
}

// expectedState is whether discovery should list an entry, and the deadline for that.
type expectedState struct {
	served   bool
	deadline time.Time
}

// newDeclarations returns declarations that call changed after each event has been recorded.
func newDeclarations(client metadata.Interface, changed func()) (*declarations, error) {
	d := &declarations{
		definitions: declarationInformer(client, schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}),
		services: declarationInformer(client, schema.GroupVersionResource{
			Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
		}),
		expected: map[declared]expectedState{},
	}
	if err := d.handle(d.definitions, declaredByDefinition, changed); err != nil {
		return nil, fmt.Errorf("watching customresourcedefinitions: %w", err)
	}
	if err := d.handle(d.services, declaredByService, changed); err != nil {
		return nil, fmt.Errorf("watching apiservices: %w", err)
	}
	return d, nil
}

// declarationInformer returns an informer that stores only the name and deletion time of each object, because annotations of
// definitions can contain a whole schema.
func declarationInformer(client metadata.Interface, resource schema.GroupVersionResource) cache.SharedIndexInformer {
	informer := metadatainformer.NewFilteredMetadataInformer(
		client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	// SetTransform fails only if the informer is running.
	_ = informer.SetTransform(func(object any) (any, error) {
		full, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return object, nil
		}
		return &metav1.PartialObjectMetadata{TypeMeta: full.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Name: full.Name, UID: full.UID, ResourceVersion: full.ResourceVersion, DeletionTimestamp: full.DeletionTimestamp,
		}}, nil
	})
	return informer
}

func declaredByDefinition(name string) declared {
	resource := schema.ParseGroupResource(name)
	return declared{group: resource.Group, resource: resource.Resource}
}

func declaredByService(name string) declared {
	version, group, _ := strings.Cut(name, ".")
	return declared{group: group, version: version}
}

// handle adds an event handler to an informer. It records what discovery should return, and then calls changed.
func (d *declarations) handle(informer cache.SharedIndexInformer, declaredBy func(name string) declared, changed func()) error {
	record := func(object any, present bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			d.expect(declaredBy(partial.Name), present && partial.DeletionTimestamp == nil, present, time.Now())
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { record(object, true) },
		UpdateFunc: func(_, object any) { record(object, true) },
		DeleteFunc: func(object any) { record(object, false) },
	})
	return err
}

// run watches the objects until ctx ends.
func (d *declarations) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.definitions.RunWithContext(ctx) })
	running.Go(func() { d.services.RunWithContext(ctx) })
	running.Wait()
}

// expect records what discovery should return after an event. If the object exists but is being deleted (served is false,
// present is true), nothing is expected, because its type may be served until the object is deleted.
func (d *declarations) expect(entry declared, served, present bool, now time.Time) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.finalAt = now.Add(finalDelay)
	d.delay = firstRetryDelay
	if served != present {
		delete(d.expected, entry)
		return
	}
	d.expected[entry] = expectedState{served: served, deadline: now.Add(expectedTimeout)}
}

// next returns the time until discovery should run again without another event, zero if that is not necessary. It drops
// the expected states that the snapshot agrees with, and those past their deadline.
func (d *declarations) next(snapshot *Snapshot, now time.Time) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for entry, expected := range d.expected {
		if entry.servedIn(snapshot) == expected.served || now.After(expected.deadline) {
			delete(d.expected, entry)
		}
	}
	if len(d.expected) > 0 {
		delay := d.delay
		d.delay = min(2*d.delay, maxRetryDelay)
		return delay
	}
	return max(0, d.finalAt.Sub(now))
}

// servedIn reports whether a snapshot lists the entry. A group version whose discovery failed is served.
func (e declared) servedIn(snapshot *Snapshot) bool {
	if _, failed := snapshot.failed[schema.GroupVersion{Group: e.group, Version: e.version}]; failed && e.resource == "" {
		return true
	}
	for _, t := range snapshot.types {
		if t.Resource.Group == e.group && !t.Stale &&
			(e.resource == t.Resource.Resource || e.resource == "" && e.version == t.Resource.Version) {
			return true
		}
	}
	return false
}

// declares reports whether an object that declares the type exists: its definition, or the APIService of its group version
// if discovery lists nothing of that group version.
func (d *declarations) declares(t Type, groupVersionServed bool) bool {
	resource := t.Resource
	if exists(d.definitions, resource.GroupResource().String()) {
		return true
	}
	return !groupVersionServed && exists(d.services, resource.Version+"."+resource.Group)
}

// exists reports whether an informer has an object that is not being deleted.
func exists(informer cache.SharedIndexInformer, name string) bool {
	object, known, err := informer.GetStore().GetByKey(name)
	if err != nil || !known {
		return false
	}
	partial, ok := object.(*metav1.PartialObjectMetadata)
	return ok && partial.DeletionTimestamp == nil
}
