// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// relayedWatch passes on what relay makes of the events of a watch. Unlike that of watch.Filter, its goroutine ends
// with Stop also when nobody takes the next event.
type relayedWatch struct {
	watch.Interface
	results chan watch.Event
	stop    context.CancelFunc
	relay   func(watch.Event) watch.Event
}

func newRelayedWatch(ctx context.Context, inner watch.Interface, relay func(watch.Event) watch.Event) *relayedWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &relayedWatch{Interface: inner, results: make(chan watch.Event), stop: cancel, relay: relay}
	go w.pass(ctx)
	return w
}

// ResultChan is closed when the inner watch ends or after Stop.
func (w *relayedWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop may be called more than once.
func (w *relayedWatch) Stop() {
	w.stop()
	w.Interface.Stop()
}

func (w *relayedWatch) pass(ctx context.Context) {
	defer close(w.results)
	for event := range w.Interface.ResultChan() {
		select {
		case w.results <- w.relay(event):
		case <-ctx.Done():
			return
		}
	}
}
