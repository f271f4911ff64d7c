// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func discard(context.Context, Author) {}

// BenchmarkSubmitIdle measures a change while no source has sent facts, including the reading of managedFields.
func BenchmarkSubmitIdle(b *testing.B) {
	j := NewJoiner(Config{MaxWait: maxWait})
	event := configMap("web", "u1", "6").event(update, "C")
	b.ReportAllocs()
	for b.Loop() {
		j.Observe(event)
		if err := j.Submit(b.Context(), event, discard); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkManagedFields measures the reading of managedFields alone.
func BenchmarkManagedFields(b *testing.B) {
	object, now := configMap("web", "u1", "6").Object, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		managerOf(object, now)
	}
}

// BenchmarkJoin measures a change whose audit fact and admission fact arrive right after it, for 500 objects in turn.
func BenchmarkJoin(b *testing.B) {
	j := NewJoiner(Config{MaxWait: maxWait})
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { j.Run(ctx) })
	b.ReportAllocs()
	version := 0
	for b.Loop() {
		version++
		name := fmt.Sprintf("object-%d", version%500)
		event := configMap(name, name, strconv.Itoa(version)).event(update, "C")
		admission, audit := factOf("ann", Admission, update, event), factOf("ann", Audit, update, event)
		admission.Before, admission.Content = strconv.Itoa(version-500), "C"
		j.Observe(event)
		if err := j.Submit(ctx, event, discard); err != nil {
			b.Fatal(err)
		}
		j.Add([]Fact{admission, audit}, false)
	}
	cancel()
	running.Wait()
}

// BenchmarkFlood adds a million facts in each iteration, and reports their memory.
func BenchmarkFlood(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		j := NewJoiner(Config{MaxWait: maxWait})
		for i := range 1_000_000 {
			name := strconv.Itoa(i)
			j.Add([]Fact{{
				ID: name, Signal: Audit, Operation: update, Resource: "configmaps", Namespace: "flood-" + name[:1], Name: name,
				UID: types.UID(name), After: name, Begun: time.Now(), Actor: Actor{Username: "eve"},
			}}, false)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc), "heap-bytes")
		runtime.KeepAlive(j)
	}
}
