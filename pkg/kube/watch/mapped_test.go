// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"k8s.io/apimachinery/pkg/watch"
)

// lateWatch is a watch that sends an event after it was stopped.
type lateWatch struct {
	events chan watch.Event
}

func (w *lateWatch) Stop() { w.events <- watch.Event{Type: watch.Error} }

func (w *lateWatch) ResultChan() <-chan watch.Event { return w.events }

func TestEventsAfterStopAreNotConverted(t *testing.T) {
	mapped := newMappedWatch(t.Context(), &lateWatch{events: make(chan watch.Event)}, func(event watch.Event) watch.Event {
		t.Errorf("converted an event of type %s", event.Type)
		return event
	})
	mapped.Stop()
	for event := range mapped.ResultChan() {
		t.Errorf("received an event of type %s", event.Type)
	}
}
