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
	// longestRest is how long nothing is read while nothing is heard. It bounds how late a change of the Secret is seen, which
	// is not watched: nobody waits for it, since clients trust what is shown until then.
	longestRest = time.Minute
	// looksInHold is how often at least one looks while an authority stays in bundles that is not needed any more.
	looksInHold = 6
)

// watches count what happens to the objects by which the cluster finds the server.
type watches struct {
	informers []cache.SharedIndexInformer
	events    atomic.Uint64
	running   sync.WaitGroup
}

// newWatches watches nothing before start, and nothing at all without a client.
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

// start watches until ctx is done. What is running has ended some time after that.
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

// open tells whether everything is watched.
func (w *watches) open() bool {
	for _, each := range w.informers {
		if !each.HasSynced() {
			return false
		}
	}
	return len(w.informers) > 0
}

// vigil tells whether there may be something new in the cluster since the last look. It has one user.
type vigil struct {
	watches *watches
	rest    time.Duration
	// heard and last are what had happened, and the time, when the last look began.
	heard uint64
	last  time.Time
}

func newVigil(watches *watches, source Source) vigil {
	return vigil{watches: watches, rest: min(longestRest, source.hold()/looksInHold)}
}

// begin takes note that a look begins, which sees what has happened until now.
func (v *vigil) begin(now time.Time) { v.heard, v.last = v.watches.events.Load(), now }

// quiet tells whether nothing has been heard since the last look, which is not long ago.
func (v *vigil) quiet(now time.Time) bool {
	age := now.Sub(v.last)
	return v.watches.open() && v.watches.events.Load() == v.heard && age >= 0 && age < v.rest
}
