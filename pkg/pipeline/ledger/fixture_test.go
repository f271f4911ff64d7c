// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	prefix   = "uid/sink/address/"
	patience = 2 * time.Minute
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// fixture is a store and a clock, which outlive the process, and the ledger of the running process.
type fixture struct {
	testing.TB
	store    *store
	options  []table.Option
	clock    *clocktesting.FakeClock
	debounce time.Duration
	maxItems int
	maxWait  time.Duration
	maxBytes int

	*ledger.Ledger
	// handed is the last batch that was returned.
	handed ledger.Batch
}

// newFixture returns a fixture with a debounce of 10 seconds, batches of 50 and no maxWait.
func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{
		TB: t, store: &store{KV: bolttest.NewKV(t)}, clock: clocktesting.NewFakeClock(noon), debounce: 10 * time.Second, maxItems: 50,
	}
	s.open()
	return s
}

func (s *fixture) table() *table.Table {
	return table.New(s.store, "/slipstream/work", s.options...).Table(ledger.TableName)
}

// tryOpen opens the ledger, as a process does when it starts. What the previous one has not written is lost.
func (s *fixture) tryOpen() (err error) {
	s.Ledger, err = ledger.Open(s.Context(), ledger.Config{
		Table: s.table(), Prefix: prefix, Clock: s.clock, MaxBytes: s.maxBytes,
		Debounce: func() time.Duration { return s.debounce },
		MaxItems: func() int { return s.maxItems },
		MaxWait:  func() time.Duration { return s.maxWait },
	})
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
	ctx, cancel := context.WithTimeout(s.Context(), patience)
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
	s.eventually("Next waits", func() bool { return len(got) > 0 || s.clock.HasWaiters() || s.Counts().Pending == 0 })
	cancel()
	if batch, some := <-got; some {
		s.Fatalf("there is a batch: %s", batch)
	}
}

// eventually waits until a check succeeds.
func (s *fixture) eventually(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			s.Fatalf("not within %s: %s", patience, what)
		}
		<-time.After(100 * time.Microsecond)
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

func words(batch ledger.Batch) string {
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
	return item.Item{Key: key, Labels: map[string]string{"version": fmt.Sprint(version)}, UID: types.UID("uid of " + key.Name), CreatedAt: noon}
}

var errDead = errors.New("the process is dead")

// store is a store that can fail from a write on, as if the process had died.
type store struct {
	clientv3.KV
	writes atomic.Int64
	// dies is the number of the write from which on all fail; 0 means none. With answerLost, that write takes effect.
	dies       atomic.Int64
	answerLost atomic.Bool
	// full makes every write fail.
	full atomic.Bool
}

// live lets writes of a new process succeed.
func (s *store) live() {
	s.dies.Store(0)
	s.writes.Store(0)
}

func (s *store) Txn(ctx context.Context) clientv3.Txn { return &txn{s.KV.Txn(ctx), s} }

type txn struct {
	clientv3.Txn
	store *store
}

func (x *txn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.Txn = x.Txn.Then(ops...)
	return x
}

func (x *txn) Commit() (*clientv3.TxnResponse, error) {
	if x.store.full.Load() {
		return nil, rpctypes.ErrNoSpace
	}
	switch number, dies := x.store.writes.Add(1), x.store.dies.Load(); {
	case dies == 0 || number < dies:
		return x.Txn.Commit()
	case number == dies && x.store.answerLost.Load():
		_, _ = x.Txn.Commit() // Nobody hears of it.
	}
	return nil, errDead
}
