// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// filteredWatch is a watch without some events of another one. Unlike watch.Filter it ends when it is stopped, also if nothing receives its
// last event.
type filteredWatch struct {
	from    watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

// newFilteredWatch returns the events of a watch for which keep returns true. An error of keep is sent and ends the watch.
func newFilteredWatch(from watch.Interface, keep func(watch.Event) (bool, error)) watch.Interface {
	w := &filteredWatch{from: from, events: make(chan watch.Event), stopped: make(chan struct{})}
	w.stop = sync.OnceFunc(func() {
		close(w.stopped)
		from.Stop()
	})
	go w.run(keep)
	return w
}

// Stop implements watch.Interface.
func (w *filteredWatch) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *filteredWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *filteredWatch) run(keep func(watch.Event) (bool, error)) {
	defer close(w.events)
	defer w.stop()
	for event := range w.from.ResultChan() {
		kept, err := keep(event)
		if err != nil {
			status := apierrors.NewInternalError(err).Status()
			event, kept = watch.Event{Type: watch.Error, Object: &status}, true
		}
		if !kept {
			continue
		}
		select {
		case w.events <- event:
		case <-w.stopped:
			return
		}
		if err != nil {
			return
		}
	}
}
