// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// mappedWatch is a watch whose events are converted by a function. Unlike that of watch.Filter, its goroutine ends after
// Stop even if no event is received from ResultChan. Events after Stop are not converted: client-go's watch may send
// the error that closing its response caused.
type mappedWatch struct {
	watch.Interface
	results chan watch.Event
	stop    context.CancelFunc
	convert func(watch.Event) watch.Event
}

func newMappedWatch(ctx context.Context, inner watch.Interface, convert func(watch.Event) watch.Event) *mappedWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &mappedWatch{Interface: inner, results: make(chan watch.Event), stop: cancel, convert: convert}
	go w.run(ctx)
	return w
}

// ResultChan returns a channel that is closed when the inner watch ends or after Stop.
func (w *mappedWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch. It may be called more than once.
func (w *mappedWatch) Stop() {
	w.stop()
	w.Interface.Stop()
}

func (w *mappedWatch) run(ctx context.Context) {
	defer close(w.results)
	for event := range w.Interface.ResultChan() {
		if ctx.Err() != nil {
			return
		}
		select {
		case w.results <- w.convert(event):
		case <-ctx.Done():
			return
		}
	}
}
