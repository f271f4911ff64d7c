// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
	"github.com/configbutler/slipstream/test/testkit"
)

const window = 30 * time.Second

var metrics = syncstatuspending.NewMetrics("catalog", "catalogs")

// fixture has the store and the clock, which outlive a process.
type fixture struct {
	testing.TB
	kv    clientv3.KV
	clock *testkit.Clock
	// process counts the writes to kv, and written is their size in bytes.
	process *testkit.Process
	written atomic.Int64
	// full makes every write to kv fail.
	full atomic.Bool
	// capacity is the capacity of opened intakes.
	capacity int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{TB: t, clock: testkit.NewClock(t), process: &testkit.Process{}}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error {
		if s.full.Load() {
			return rpctypes.ErrNoSpace
		}
		s.written.Add(int64(write.Bytes))
		return s.process.Write(write.Commit)
	})
	return s
}

// eventually steps the clock by milliseconds until a condition is true.
func (s *fixture) eventually(what string, condition func() bool) {
	s.Helper()
	s.clock.EventuallyBy(time.Millisecond, what, func() error {
		if !condition() {
			return errors.New("it is not true")
		}
		return nil
	})
}

func (s *fixture) table() *table.Table {
	return table.New(s.kv, "/slipstream/work").Table(syncstatuspending.TableName)
}

// open opens the intake, as a process does when it starts.
func (s *fixture) open() *syncstatuspending.Intake {
	s.Helper()
	opened, err := syncstatuspending.Open(s.Context(), s.table(),
		syncstatuspending.Config{Clock: s.clock, Capacity: s.capacity, Metrics: metrics})
	if err != nil {
		s.Fatal(err)
	}
	return opened
}

// closed closes and returns the batch of a namespace, which must exist.
func (s *fixture) closed(of *syncstatuspending.Intake, namespace string) syncstatuspending.Batch {
	s.Helper()
	batch, some, err := of.Close(s.Context(), namespace)
	if err != nil || !some {
		s.Fatalf("no batch of %s: %v, %v", namespace, some, err)
	}
	if batch.ID == "" || batch.Namespace != namespace {
		s.Fatalf("the batch of %s is %+v", namespace, batch)
	}
	return batch
}

func (s *fixture) done(of *syncstatuspending.Intake, batch syncstatuspending.Batch) {
	s.Helper()
	if err := of.Done(s.Context(), batch); err != nil {
		s.Fatal(err)
	}
}

// rows returns the keys in the table, with # instead of the numbers of batches.
func (s *fixture) rows() (keys []string) {
	s.Helper()
	for row, err := range s.table().Scan(s.Context(), "") {
		if err != nil {
			s.Fatal(err)
		}
		parts := strings.Split(row.Key, "/")
		parts[1] = "#"
		keys = append(keys, strings.Join(parts, "/"))
	}
	return keys
}

// run runs an intake until it is stopped, or the test ends.
func (s *fixture) run(of *syncstatuspending.Intake, notices syncstatuspending.Notices) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		of.Run(ctx, notices)
	}()
	stop = func() { cancel(); <-ended }
	s.Cleanup(stop)
	return stop
}

// noNotices returns notices that do nothing.
func noNotices() syncstatuspending.Notices {
	return syncstatuspending.Notices{Opened: func(string) {}, Filling: func(int, int) {}, Overflowed: func(string) {}, Blocked: func(error) {}}
}

// changed returns an event of a Deployment.
func changed(namespace, name string, version int) syncstatuspending.Event {
	return syncstatuspending.Event{
		Object: syncstatuspending.Object{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: namespace, Name: name},
		UID:    types.UID("uid of " + name), ResourceVersion: strconv.Itoa(version),
	}
}

func tableRow(key, value string) table.Row {
	return table.Row{Key: key, Value: []byte(value)}
}

func atoi(t testing.TB, text string) int {
	t.Helper()
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func removed(namespace, name string, version int) syncstatuspending.Event {
	event := changed(namespace, name, version)
	event.Removed = true
	return event
}

func by(user string, event syncstatuspending.Event) syncstatuspending.Event {
	event.Author = attribution.Author{Actor: attribution.Actor{Username: user}, Signal: attribution.Audit}
	return event
}

// names returns the names of changed objects, with the version and the number of events.
func names(changes []syncstatuspending.Change) []string {
	out := make([]string, 0, len(changes))
	for _, change := range changes {
		version := change.ResourceVersion
		if change.Removed {
			version += " removed"
		}
		out = append(out, fmt.Sprintf("%s %s x%d", change.Name, version, change.Events))
	}
	return out
}

func expect(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// metric returns the sum of a metric of the intake, restricted to a label value if one is given.
func metric(t testing.TB, name, label string) (sum float64) {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "slipstream_catalog_intake_"+name {
			continue
		}
		for _, m := range family.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
