// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/gitrepo"
	"github.com/configbutler/slipstream/pkg/manifest"
)

const (
	// turns are taken with a Joiner and without one, next to each other.
	turns = 101
	// turnChanges is how many changes a turn has.
	turnChanges = 500
)

// unheard measures what a change costs more when somebody has to be asked who made it, and nobody ever tells. It is held
// against the least that a change takes: it is decoded and rendered. What follows, the outbox and Git, takes far longer.
func unheard(b *testing.B) {
	b.Helper()
	events := eventsOf(b)
	joiner := attribution.NewJoiner(attribution.Config{MaxWait: 2 * time.Second})
	delivered := 0
	deliver := func(_ context.Context, author attribution.Author) {
		if author.Signal == attribution.ManagedFields {
			delivered++
		}
	}
	ask := func(event attribution.Event) {
		joiner.Observe(event)
		if joiner.Waiting(attribution.Object{GroupResource: event.Resource.GroupResource(), Namespace: event.Object.GetNamespace(), Name: event.Object.GetName()}) {
			b.Fatal("a change waits for nobody")
		}
		if err := joiner.Submit(b.Context(), event, deliver); err != nil {
			b.Fatal(err)
		}
	}
	var plain, asking, ratios []float64
	for range turns {
		plain = append(plain, turn(b, events, func(attribution.Event) {}))
		asking = append(asking, turn(b, events, ask))
		ratios = append(ratios, asking[len(asking)-1]/plain[len(plain)-1])
	}
	if delivered != turns*turnChanges {
		b.Errorf("%d of %d changes were delivered with their tool", delivered, turns*turnChanges)
	}
	b.ReportMetric(median(plain), "plain-us/change")
	b.ReportMetric(median(asking), "asking-us/change")
	b.ReportMetric(median(ratios), "asking/plain")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// turn does with each event what the mirror does, and returns the microseconds of processor time that one takes, which says
// the same whatever else the machine does.
func turn(b *testing.B, events [][]byte, ask func(attribution.Event)) float64 {
	b.Helper()
	before := used(b)
	for _, content := range events {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			b.Fatal(err)
		}
		canonical, err := manifest.Render(object)
		if err != nil {
			b.Fatal(err)
		}
		gitrepo.BlobHash(canonical)
		ask(attribution.Event{
			Operation: v1alpha1.OperationUpdate, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Object: object, Content: func() string { return string(canonical) },
		})
	}
	return float64((used(b) - before).Microseconds()) / float64(len(events))
}

// used is the processor time that this process has taken.
func used(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// eventsOf are ConfigMaps of 1 KiB as a watch tells of them.
func eventsOf(b *testing.B) [][]byte {
	b.Helper()
	settings := strings.Repeat("server.connections.limit = 100 # per address\\n", 20)
	events := make([][]byte, turnChanges)
	for i := range events {
		events[i] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings-%06d","namespace":"shop","uid":"u%d",`+
			`"resourceVersion":"%d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"shop"},"managedFields":[{"manager":"kubectl-edit",`+
			`"operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},`+
			`"f:server.properties":{},"f:write":{}},"f:metadata":{"f:labels":{".":{},"f:app":{}}}}}]},"data":{"server.properties":"%s","write":"%d"}}`,
			i, i, i+1, settings, i)
	}
	return events
}
