// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// runWatches keeps the watches up to date until ctx ends.
func (d *Detector) runWatches(ctx context.Context) {
	types := d.config.Clock.NewTicker(discoveryInterval)
	defer types.Stop()
	for {
		watches := d.watches()
		d.watched.Set(watches)
		if d.streams.Set(ctx, watches) != nil {
			return // ctx has ended.
		}
		select {
		case <-d.watchesChanged:
		case <-types.C():
		case <-d.policyChanged:
			for _, in := range d.config.Index.Collections() {
				d.queue.Add(in.Namespace)
			}
		case <-ctx.Done():
			return
		}
	}
}

// watches returns the watches for all copied types by namespace, and for attached types in all sources.
func (d *Detector) watches() []watch.Watch {
	watches := sets.New[watch.Watch]()
	for _, in := range d.config.Index.Collections() {
		watches.Insert(watchOf(in))
	}
	sources := d.config.Sources()
	d.attached.retain(sources)
	types := d.attached.discover(d.config.Mapper)
	for namespace := range sources {
		for _, resource := range types {
			watches.Insert(watch.Watch{Resource: resource, Namespace: namespace})
		}
	}
	return watches.UnsortedList()
}

func watchOf(in index.Collection) watch.Watch {
	return watch.Watch{Resource: resourceOf(in.Type), Namespace: in.Namespace}
}

// indexChanged schedules a comparison of what has changed in the index. A source object may have changed after a run has
// read it and before the index had its copy. What the run has copied is removed from the open record.
func (d *Detector) indexChanged(environment types.NamespacedName, changed []index.Object) {
	signal(d.watchesChanged)
	for _, of := range changed {
		d.changedEnvironments.add(of.Namespace, environment)
		if copied, _ := d.config.Index.Differs(of, ""); copied {
			d.intake.Include(toPendingObject(of))
		}
		d.queue.Add(of.Namespace)
	}
}

func toPendingObject(of index.Object) pending.Object {
	object := pending.Object{Namespace: of.Namespace, Name: of.Name}
	object.Kind = string(of.Type)
	return object
}

func toIndexObject(of pending.Object) index.Object {
	return index.Object{Type: v1alpha1.DependencyType(of.Kind), Namespace: of.Namespace, Name: of.Name}
}
