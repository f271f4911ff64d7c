// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

const prefix = "uid/sink/address/"

// fixture is a store and a clock, which outlive the process, and the ledger of the running process.
type fixture struct {
	testing.TB
	// process counts the writes to kv.
	process *testkit.Process
	// full makes every write to kv fail.
	full     atomic.Bool
	kv       clientv3.KV
	options  []table.Option
	clock    *testkit.Clock
	debounce time.Duration
	maxItems int
	maxWait  time.Duration
	maxBytes int

	*ledger.Ledger
	// handed is the last batch that was returned.
	handed item.Batch
}

// newFixture returns a fixture with a debounce of 10 seconds, batches of 50 and no maxWait.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureOn(t, bolttest.NewKV(t), 10*time.Second)
}

// newFixtureOn is newFixture with a store and a debounce.
func newFixtureOn(t testing.TB, kv clientv3.KV, debounce time.Duration) *fixture {
	t.Helper()
	s := &fixture{TB: t, process: &testkit.Process{}, clock: testkit.NewClock(t), debounce: debounce, maxItems: 50}
	s.kv = bolttest.WithWrites(kv, func(_ context.Context, write bolttest.Write) error {
		if s.full.Load() {
			return rpctypes.ErrNoSpace
		}
		return s.process.Write(write.Commit)
	})
	s.open()
	return s
}

func (s *fixture) table() *table.Table {
	return table.New(s.kv, "/slipstream/work", s.options...).Table(ledger.TableName)
}

// tryOpen opens the ledger, as a process does when it starts. What the previous one has not written is lost.
func (s *fixture) tryOpen() (err error) {
	s.Ledger, err = ledger.Open(s.Context(), ledger.Config{
		Table: s.table(), Prefix: prefix, Clock: s.clock,
		Debounce: func() time.Duration { return s.debounce },
		MaxItems: func() int { return s.maxItems },
		MaxWait:  func() time.Duration { return s.maxWait },
	})
	if err == nil && s.maxBytes > 0 {
		s.SetMaxBatchBytes(s.maxBytes)
	}
	return err
}

func (s *fixture) open() {
	s.Helper()
	s.must(s.tryOpen())
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// next returns the next batch as words, in order: +name:version for an upsert, -name for a delete.
func (s *fixture) next() string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), testkit.Timeout)
	defer cancel()
	batch, err := s.Next(ctx)
	s.must(err)
	s.handed = batch
	return words(batch)
}

// none checks that no batch is due.
func (s *fixture) none() {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	got := make(chan string, 1)
	go func() {
		batch, err := s.Next(ctx)
		if err == nil {
			got <- words(batch)
		}
		close(got)
	}()
	testkit.EventuallyTrue(s, "Next waits", func() bool { return len(got) > 0 || s.clock.HasWaiters() || s.Counts().Pending == 0 })
	cancel()
	if batch, some := <-got; some {
		s.Fatalf("unexpected batch: %s", batch)
	}
}

// keysOf returns the keys of the objects with names in the last batch; without names, all.
func (s *fixture) keysOf(names ...string) (keys []item.Key) {
	for _, upserted := range s.handed.Upserts {
		keys = append(keys, upserted.Key)
	}
	keys = append(keys, s.handed.Deletes...)
	return slices.DeleteFunc(keys, func(key item.Key) bool { return len(names) > 0 && !slices.Contains(names, key.Name) })
}

func (s *fixture) delivered(names ...string) {
	s.Helper()
	s.must(s.Delivered(s.Context(), s.handed.ID, s.keysOf(names...)))
}

func (s *fixture) rejected(names ...string) {
	s.Helper()
	s.must(s.Rejected(s.Context(), s.handed.ID, s.keysOf(names...)))
}

func words(batch item.Batch) string {
	var out []string
	for _, upserted := range batch.Upserts {
		out = append(out, "+"+upserted.Name+":"+upserted.Labels["version"])
	}
	for _, key := range batch.Deletes {
		out = append(out, "-"+key.Name)
	}
	return strings.Join(out, " ")
}

// rows returns the names of the objects that have rows.
func (s *fixture) rows() (names []string) {
	s.Helper()
	for row, err := range s.table().Scan(s.Context(), prefix) {
		s.must(err)
		if name := strings.TrimPrefix(row.Key, prefix); name != "batch" {
			names = append(names, name[strings.LastIndex(name, "/")+1:])
		}
	}
	return names
}

// run runs the ledger until it is stopped, or the test ends.
func (s *fixture) run() (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended, running := make(chan struct{}), s.Ledger
	go func() {
		defer close(ended)
		running.Run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	s.Cleanup(stop)
	return stop
}

func instance(name string) item.Key {
	return item.Key{Kind: item.Instance, APIVersion: "apps/v1", ObjectKind: "Deployment", Namespace: "shop", Name: name}
}

func definition(name string) item.Key {
	return item.Key{Kind: item.CustomResourceDefinition, ObjectKind: strings.ToUpper(name), Name: name}
}

func version(key item.Key, version any) item.Item {
	return item.Item{
		Key: key, Labels: map[string]string{"version": fmt.Sprint(version)}, UID: types.UID("uid of " + key.Name), CreatedAt: testkit.Noon,
	}
}
