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
	// announcementPatience bounds how long discovery is asked again and again for a type that a
	// CustomResourceDefinition or APIService has announced and that does not show up (or does not go away).
	announcementPatience = 30 * time.Second
	// announcementFirstDelay and announcementLastDelay bound the pauses in between, which double.
	announcementFirstDelay = 250 * time.Millisecond
	announcementLastDelay  = 4 * time.Second
	// settlingDelay is when discovery is asked once more after the last event: a change of a definition's served
	// versions does not show in its metadata, so nobody knows what to wait for.
	settlingDelay = 2 * time.Second
)

// declarations follows the metadata of CustomResourceDefinitions and APIServices: the objects that make types come
// and go. It remembers what the latest events announced until discovery agrees.
type declarations struct {
	definitions cache.SharedIndexInformer
	services    cache.SharedIndexInformer

	mutex     sync.Mutex
	announced map[announcement]expectation
	delay     time.Duration
	settleAt  time.Time
}

// announcement is what one object stands for in discovery: a resource (from a CustomResourceDefinition) or a group
// version (from an APIService; its resource is empty).
type announcement struct {
	group, version, resource string
}

type expectation struct {
	present bool
	until   time.Time
}

// newDeclarations calls changed after each event has been taken in.
func newDeclarations(client metadata.Interface, changed func()) (*declarations, error) {
	d := &declarations{
		definitions: declarationInformer(client, schema.GroupVersionResource{
			Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
		}),
		services: declarationInformer(client, schema.GroupVersionResource{
			Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
		}),
		announced: map[announcement]expectation{},
	}
	if err := d.follow(d.definitions, announcedByDefinition, changed); err != nil {
		return nil, fmt.Errorf("following customresourcedefinitions: %w", err)
	}
	if err := d.follow(d.services, announcedByService, changed); err != nil {
		return nil, fmt.Errorf("following apiservices: %w", err)
	}
	return d, nil
}

// declarationInformer keeps a name and a deletion time per object: annotations of definitions can hold a whole schema.
func declarationInformer(client metadata.Interface, resource schema.GroupVersionResource) cache.SharedIndexInformer {
	informer := metadatainformer.NewFilteredMetadataInformer(
		client, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	// SetTransform fails on a running informer only.
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

func announcedByDefinition(name string) announcement {
	resource := schema.ParseGroupResource(name)
	return announcement{group: resource.Group, resource: resource.Resource}
}

func announcedByService(name string) announcement {
	version, group, _ := strings.Cut(name, ".")
	return announcement{group: group, version: version}
}

func (d *declarations) follow(
	informer cache.SharedIndexInformer, announcedBy func(name string) announcement, changed func(),
) error {
	take := func(object any, present bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if declared, ok := object.(*metav1.PartialObjectMetadata); ok {
			d.announce(announcedBy(declared.Name), present && declared.DeletionTimestamp == nil, present, time.Now())
			changed()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { take(object, true) },
		UpdateFunc: func(_, object any) { take(object, true) },
		DeleteFunc: func(object any) { take(object, false) },
	})
	return err
}

// run follows the objects until ctx ends.
func (d *declarations) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.definitions.RunWithContext(ctx) })
	running.Go(func() { d.services.RunWithContext(ctx) })
	running.Wait()
}

// announce takes one event in. An object that exists but is being deleted is served until it is gone: nothing can be
// expected of it (served is false, exists is true).
func (d *declarations) announce(what announcement, served, exists bool, now time.Time) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.settleAt = now.Add(settlingDelay)
	d.delay = announcementFirstDelay
	if served != exists {
		delete(d.announced, what)
		return
	}
	d.announced[what] = expectation{present: served, until: now.Add(announcementPatience)}
}

// next says after which pause discovery should be asked again although nothing has happened; zero means that there is
// no reason to. Expectations that the snapshot meets, or whose time is over, are dropped.
func (d *declarations) next(snapshot *Snapshot, now time.Time) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for what, expected := range d.announced {
		if what.presentIn(snapshot) == expected.present || now.After(expected.until) {
			delete(d.announced, what)
		}
	}
	if len(d.announced) > 0 {
		delay := d.delay
		d.delay = min(2*d.delay, announcementLastDelay)
		return delay
	}
	return max(0, d.settleAt.Sub(now))
}

func (a announcement) presentIn(snapshot *Snapshot) bool {
	if _, failed := snapshot.failed[schema.GroupVersion{Group: a.group, Version: a.version}]; failed && a.resource == "" {
		return true
	}
	for _, t := range snapshot.types {
		if t.Resource.Group == a.group && !t.Stale &&
			(a.resource == t.Resource.Resource || a.resource == "" && a.version == t.Resource.Version) {
			return true
		}
	}
	return false
}

// declares says whether an object still stands behind the type: its own definition, or the APIService of its group
// version when that is missing from discovery as a whole.
func (d *declarations) declares(t Type, groupVersionServed bool) bool {
	resource := t.Resource
	if exists(d.definitions, resource.GroupResource().String()) {
		return true
	}
	return !groupVersionServed && exists(d.services, resource.Version+"."+resource.Group)
}

// exists leaves objects out that are being deleted.
func exists(informer cache.SharedIndexInformer, name string) bool {
	object, found, err := informer.GetStore().GetByKey(name)
	if err != nil || !found {
		return false
	}
	declared, ok := object.(*metav1.PartialObjectMetadata)
	return ok && declared.DeletionTimestamp == nil
}
