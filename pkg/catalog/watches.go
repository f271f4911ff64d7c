// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"

	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// watches watches the workloads of the source namespaces.
type watches struct {
	lister  *lister
	types   *watch.Types
	streams *watch.Streams
	sources *reachability
	namer   *commitNamer
	// current are the objects that are watched.
	current watched.Objects
	// changed has an element when the desired watches may have changed.
	changed chan struct{}
}

func newWatches(lister *lister, types *watch.Types, streams *watch.Streams) *watches {
	return &watches{lister: lister, types: types, streams: streams, changed: make(chan struct{}, 1)}
}

// trigger computes the desired watches again.
func (w *watches) trigger() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// run keeps the desired watches open until ctx ends.
func (w *watches) run(ctx context.Context) {
	for {
		desired := w.desired()
		w.current.Set(desired)
		w.sources.setWatches(desired)
		w.namer.setNamespaces(w.namespaces())
		if w.streams.Set(ctx, desired) != nil {
			return // ctx has ended.
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return
		}
	}
}

// namespaces returns the source namespaces of catalogs, without those that must not be followed.
func (w *watches) namespaces() []string {
	var out []string
	for _, namespace := range w.lister.namespaces() {
		if len(w.lister.catalogs(namespace)) > 0 && w.sources.refusal(namespace).IsZero() {
			out = append(out, namespace)
		}
	}
	return out
}

// desired returns a watch of each type of workloads in each source namespace.
func (w *watches) desired() []watch.Watch {
	types, _ := capture.Types(w.types.Snapshot())
	var out []watch.Watch
	for _, namespace := range w.namespaces() {
		for _, resource := range types {
			out = append(out, watch.Watch{Resource: resource, Namespace: namespace})
		}
	}
	return out
}
