// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

const (
	// maxInterval limits the time between syncs without events. It bounds how late a change of the Secret is observed,
	// which is not watched: clients trust the served certificate until then.
	maxInterval = time.Minute
	// minSyncsInHold is the minimum number of syncs while an unneeded authority stays in bundles.
	minSyncsInHold = 6
)

// watches counts the events of the objects that register the server.
type watches struct {
	informers []cache.SharedIndexInformer
	events    atomic.Uint64
	running   sync.WaitGroup
}

// newWatches returns watches that start starts. Without a client there are none.
func newWatches(client metadata.Interface) *watches {
	w := &watches{}
	if client == nil {
		return w
	}
	for _, each := range registered {
		informer := metadatainformer.NewFilteredMetadataInformer(client, each.resource, metav1.NamespaceAll, 0, cache.Indexers{},
			func(options *metav1.ListOptions) {
				options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, each.name).String()
			}).Informer()
		w.informers = append(w.informers, informer)
	}
	return w
}

// start watches until ctx is done. The watches end some time later.
func (w *watches) start(ctx context.Context) error {
	ctx = logredact.WithoutBodies(ctx)
	heard := func(any) { w.events.Add(1) }
	for _, each := range w.informers {
		if _, err := each.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: heard, UpdateFunc: func(any, any) { heard(nil) }, DeleteFunc: heard,
		}); err != nil {
			return err
		}
	}
	for _, each := range w.informers {
		w.running.Go(func() { each.RunWithContext(ctx) })
	}
	return nil
}

// open reports whether all objects are watched.
func (w *watches) open() bool {
	for _, each := range w.informers {
		if !each.HasSynced() {
			return false
		}
	}
	return len(w.informers) > 0
}

// changeDetector detects changes in the cluster since the last sync. It is not safe for concurrent use.
type changeDetector struct {
	watches *watches
	rest    time.Duration
	// heard and last are the event count and the time at the start of the last sync.
	heard uint64
	last  time.Time
}

func newChangeDetector(watches *watches, source Source) changeDetector {
	return changeDetector{watches: watches, rest: min(maxInterval, source.hold()/minSyncsInHold)}
}

// begin records that a sync begins, which observes all events until now.
func (c *changeDetector) begin(now time.Time) { c.heard, c.last = c.watches.events.Load(), now }

// quiet reports whether there was no event since the last sync, which was recent.
func (c *changeDetector) quiet(now time.Time) bool {
	age := now.Sub(c.last)
	return c.watches.open() && c.watches.events.Load() == c.heard && age >= 0 && age < c.rest
}
