// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Percentages of the capacity: from fillingPercent on Filling is called, and below relaxedPercent it may be called again.
const (
	fillingPercent  = 70
	relaxedPercent  = 50
	hundredPercents = 100
)

// notices are what Run has not published yet.
type notices struct {
	opened, overflowed sets.Set[string]
	// filling is set when the intake becomes nearly full. nearlyFull remains set until there is room again.
	filling, nearlyFull bool
	// blocked are the errors of failed attempts to write, and nil for a write that succeeded after them.
	blocked []error
}

func newNotices() notices { return notices{opened: sets.New[string](), overflowed: sets.New[string]()} }

// reserve makes room for one more change in a batch. It returns false if the batch has overflowed.
func (i *Intake) reserve(b *batch) bool {
	if !b.overflowed && i.changes >= i.capacity {
		i.overflow(i.fullest(b))
	}
	return !b.overflowed
}

// fullest returns the open batch with the most changes, counting one more in the growing batch.
func (i *Intake) fullest(growing *batch) *batch {
	fullest, most := growing, len(growing.changes)+1
	for _, batches := range i.namespaces {
		b := batches[len(batches)-1]
		if !b.isOpen() || b == growing || len(b.changes) < most {
			continue
		}
		// Of several, the growing one is preferred, then the newest.
		if len(b.changes) > most || fullest != growing && b.number > fullest.number {
			fullest, most = b, len(b.changes)
		}
	}
	return fullest
}

// overflow drops the changes of an open batch.
func (i *Intake) overflow(b *batch) {
	i.changes -= len(b.changes)
	for object := range b.changes {
		i.buffer.Remove(unwritten{batch: b, part: changePart, object: object})
	}
	b.changes, b.resync, b.overflowed = map[Object]*Change{}, true, true
	i.writeHead(b)
	i.buffer.Add(unwritten{batch: b, part: droppedPart}, 0)
	i.notices.overflowed.Insert(b.namespace)
	i.notify()
	i.metrics.resyncs.WithLabelValues(string(Overflow)).Inc()
}

// Busiest returns the namespaces with the most changes, in descending order, at most the given number.
func (i *Intake) Busiest(most int) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	changes := map[string]int{}
	var out []string
	for namespace, batches := range i.namespaces {
		for _, b := range batches {
			changes[namespace] += len(b.changes)
		}
		if changes[namespace] > 0 {
			out = append(out, namespace)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(changes[b], changes[a]), cmp.Compare(a, b)) })
	return out[:min(most, len(out))]
}

// measure updates the metrics and the fill level. The caller holds mu.
func (i *Intake) measure() {
	i.metrics.objects.Set(float64(i.changes))
	switch percent := i.changes * hundredPercents / i.capacity; {
	case percent >= fillingPercent && !i.notices.nearlyFull:
		i.notices.filling, i.notices.nearlyFull = true, true
		i.notify()
	case percent < relaxedPercent:
		i.notices.nearlyFull = false
	}
}
