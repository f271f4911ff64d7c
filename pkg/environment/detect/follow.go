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

// watchUntil watches what environments have copies of until ctx ends.
func (d *Detector) watchUntil(ctx context.Context) {
	types := d.config.Clock.NewTicker(typesPeriod)
	defer types.Stop()
	for {
		watches := d.watches()
		d.watched.Set(watches)
		if d.streams.Set(ctx, watches) != nil {
			return // ctx has ended.
		}
		select {
		case <-d.replan:
		case <-types.C():
		case <-d.lookAgain:
			for _, in := range d.config.Index.Collections() {
				d.queue.Add(in.Namespace)
			}
		case <-ctx.Done():
			return
		}
	}
}

// watches are those of each type in each namespace of which there is a copy, and of what is about workloads in all sources.
func (d *Detector) watches() []watch.Watch {
	watches := sets.New[watch.Watch]()
	for _, in := range d.config.Index.Collections() {
		watches.Insert(watchOf(in))
	}
	sources := d.config.Sources()
	d.companions.retain(sources)
	types := d.companions.discover(d.config.Mapper)
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

// indexChanged has what is known anew of an environment compared with its sources: the run that has read them may have done so
// before a change of which the index then knew nobody who cares. What the run has copied need not be told of any more.
func (d *Detector) indexChanged(environment types.NamespacedName, changed []index.Object) {
	signal(d.replan)
	for _, of := range changed {
		d.touched.add(of.Namespace, environment)
		if copied, _ := d.config.Index.Differs(of, ""); copied {
			d.intake.Look(intakeObject(of))
		}
		d.queue.Add(of.Namespace)
	}
}

func intakeObject(of index.Object) pending.Object {
	object := pending.Object{Namespace: of.Namespace, Name: of.Name}
	object.Kind = string(of.Type)
	return object
}

func indexObject(of pending.Object) index.Object {
	return index.Object{Type: v1alpha1.DependencyType(of.Kind), Namespace: of.Namespace, Name: of.Name}
}
