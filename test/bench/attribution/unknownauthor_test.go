// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// rounds is the number of rounds with a Joiner, and of rounds without one; they alternate.
	rounds = 61
	// roundChanges is the number of changes in a round.
	roundChanges = 500
)

// BenchmarkUnknownAuthor measures the additional cost of a change whose author is awaited but never reported. It is compared with
// the cost of a change from the watch until it is durable in the outbox; the steps from there to Git cost far more.
func BenchmarkUnknownAuthor(b *testing.B) {
	w := newWay(b)
	joiner := attribution.NewJoiner(attribution.Config{MaxWait: 2 * time.Second})
	alone := func(_ attribution.Event, deliver func(context.Context, attribution.Author)) {
		deliver(b.Context(), attribution.Author{Signal: attribution.Unknown})
	}
	lookup := func(event attribution.Event, deliver func(context.Context, attribution.Author)) {
		joiner.Observe(event)
		if err := joiner.Submit(b.Context(), event, deliver); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		var plain, lookups, ratios []float64
		for range rounds {
			plain = append(plain, w.round(b, alone, attribution.Unknown))
			lookups = append(lookups, w.round(b, lookup, attribution.ManagedFields))
			ratios = append(ratios, lookups[len(lookups)-1]/plain[len(plain)-1])
		}
		b.ReportMetric(median(plain), "plain-us/change")
		b.ReportMetric(median(lookups), "lookup-us/change")
		b.ReportMetric(median(ratios), "lookup/plain")
	}
	b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// way processes changes from a watch to the outbox.
type way struct {
	events  [][]byte
	outbox  *outbox.Outbox
	durable chan attribution.Signal
}

func newWay(b *testing.B) *way {
	b.Helper()
	rows, err := outbox.Open(b.Context(), table.New(bolttest.NewKV(b), "/bench/").Table("outbox"), 0, func(outbox.Row) {})
	if err != nil {
		b.Fatal(err)
	}
	w := &way{events: eventsOfWatch(), outbox: rows, durable: make(chan attribution.Signal, roundChanges)}
	var running sync.WaitGroup
	b.Cleanup(running.Wait)
	running.Go(func() {
		rows.Run(b.Context(), outbox.Events{
			Durable:  func(row outbox.Row) { w.durable <- row.Change.Author.Signal },
			TooLarge: func(row outbox.Row) { b.Errorf("%s is too large", row.Change.Path) },
			Blocked:  func(err error) { b.Log(err) },
		})
	})
	return w
}

// round writes changes to the outbox and returns the CPU time of each in microseconds, which does not depend on the load of the machine.
func (w *way) round(
	b *testing.B, submit func(attribution.Event, func(context.Context, attribution.Author)), want attribution.Signal,
) float64 {
	b.Helper()
	before := used(b)
	for _, content := range w.events {
		event, change := decode(b, content)
		submit(event, func(ctx context.Context, author attribution.Author) {
			change.Author = author
			if err := w.outbox.Enqueue(ctx, change, func(uint64) {}); err != nil {
				b.Error(err)
			}
		})
	}
	for range w.events {
		if signal := <-w.durable; signal != want {
			b.Fatalf("signal of a change = %q, want %q", signal, want)
		}
	}
	return float64((used(b) - before).Microseconds()) / float64(len(w.events))
}

// decode decodes a watch event.
func decode(b *testing.B, content []byte) (attribution.Event, outbox.Change) {
	b.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		b.Fatal(err)
	}
	canonical, err := manifest.Render(object)
	if err != nil {
		b.Fatal(err)
	}
	hash := gitrepo.BlobHash(canonical)
	event := attribution.Event{
		Operation: v1alpha1.OperationUpdate, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Object: object, Content: hash.String,
	}
	return event, outbox.Change{
		UID: "d1", Path: "core/v1/configmaps/shop/" + object.GetName() + ".yaml", Content: canonical, Operation: event.Operation,
		Object:          outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: object.GetName()},
		ResourceVersion: object.GetResourceVersion(),
	}
}

// used returns the CPU time of this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// eventsOfWatch returns watch events of ConfigMaps of 1 KiB.
func eventsOfWatch() [][]byte {
	settings := strings.Repeat(`server.connections.limit = 100 # per address\n`, 20)
	events := make([][]byte, roundChanges)
	for i := range events {
		events[i] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-%06d","namespace":"shop","uid":"u%d",`+
			`"resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"shop"},"managedFields":[{"manager":"kubectl-edit",`+
			`"operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},`+
			`"f:server.properties":{},"f:write":{}},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}}]},`+
			`"data":{"server.properties":"%s","write":"%d"}}`,
			i, i, i+1, settings, i)
	}
	return events
}
