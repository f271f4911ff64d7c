// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestBatchIsTheSameAfterADeath ends the process with a batch that the sink may have received.
func TestBatchIsTheSameAfterADeath(t *testing.T) {
	s := newFixture(t)
	for i := range 200 {
		s.Upsert(version(instance(fmt.Sprintf("w%03d", i)), 1), ledger.Immediate)
	}
	s.maxItems = 300
	s.next()
	before := s.handed
	s.open()
	s.Upsert(version(instance("w000"), 2), ledger.Immediate)
	s.Remove(instance("w001"))
	s.must(s.Flush(t.Context()))
	s.debounce = 0
	s.open()
	s.next()
	if diff := cmp.Diff(before, s.handed); diff != "" || before.ID == "" {
		t.Fatalf("batch differs after the death:\n%s", diff)
	}
	s.delivered()
	if got := s.next(); got != "+w000:2 -w001" {
		t.Errorf("next batch = %q", got)
	}
	if s.handed.Sequence != before.Sequence+1 || s.handed.ID == before.ID {
		t.Errorf("batch %s has sequence %d after %s with %d", s.handed.ID, s.handed.Sequence, before.ID, before.Sequence)
	}
}

// TestDeathWhileARemovalIsSettled ends the process at each write of a result. A batch that is returned again has its ID.
func TestDeathWhileARemovalIsSettled(t *testing.T) {
	for diesAt := 1; ; diesAt++ {
		s := newFixture(t)
		has("a")(s)
		s.Remove(instance("a"))
		s.next()
		sent := s.handed
		s.process.Start(diesAt, nil)
		err := s.Delivered(t.Context(), sent.ID, s.keysOf())
		s.process.Start(0, nil)
		s.open()
		if err == nil {
			s.none()
			return
		}
		if counts := s.Counts(); counts.Pending == 0 {
			if !counts.OldestDue.IsZero() {
				t.Errorf("death at write %d: nothing is pending, but due since %s", diesAt, counts.OldestDue)
			}
			continue
		}
		if s.next(); s.handed.ID != sent.ID {
			t.Errorf("death at write %d: the removal is sent again in batch %s, not in %s", diesAt, s.handed.ID, sent.ID)
		}
	}
}

func TestStoreIsFull(t *testing.T) {
	s := newFixture(t)
	stop := s.run()
	has("a", "b")(s)
	s.full.Store(true)
	s.Upsert(version(instance("c"), 1), ledger.Immediate)
	s.Remove(instance("a"))
	testkit.EventuallyTrue(s, "the ledger is blocked", func() bool { return s.Counts().Blocked != nil })
	if _, err := s.Next(t.Context()); err == nil {
		t.Fatal("batch was returned before it was durable")
	}
	s.full.Store(false)
	if got := s.next(); got != "+c:1 -a" {
		t.Fatalf("batch %q", got)
	}
	s.full.Store(true)
	if err := s.Delivered(t.Context(), s.handed.ID, s.keysOf()); err == nil {
		t.Fatal("delivery that cannot be written counts as delivered")
	}
	s.full.Store(false)
	s.delivered()
	testkit.EventuallyTrue(s, "the ledger is not blocked any more", func() bool { return s.Counts().Blocked == nil })
	stop()
	s.open()
	counts(2, 0, 0)(s)
	rowsOf("b", "c")(s)
}

// unreadableKV is a store that cannot be read while fails is set.
type unreadableKV struct {
	clientv3.KV
	fails *atomic.Bool
}

func (k unreadableKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if k.fails.Load() {
		return nil, rpctypes.ErrNoLeader
	}
	return k.KV.Get(ctx, key, options...)
}

// TestChangeAndBackWhileABatchCannotBeRead changes an object of a batch whose item could not be read, and changes it back.
func TestChangeAndBackWhileABatchCannotBeRead(t *testing.T) {
	s := newFixture(t)
	var fails atomic.Bool
	s.kv = unreadableKV{s.kv, &fails}
	s.open()
	now("a", 1)(s)
	s.must(s.Flush(t.Context()))
	fails.Store(true)
	if _, err := s.Next(t.Context()); err == nil {
		t.Fatal("batch was returned without its item")
	}
	for _, number := range []int{2, 1} {
		now("a", number)(s)
		s.must(s.Flush(t.Context()))
	}
	fails.Store(false)
	batch("+a:1")(s)
}

// TestRunIsMarkedBeforeASplitIsStored checks that a run counts the changes of a batch that was split, if that could not be stored yet.
func TestRunIsMarkedBeforeASplitIsStored(t *testing.T) {
	s := newFixture(t)
	now("a", 1)(s)
	now("b", 1)(s)
	batch("+a:1 +b:1")(s)
	s.maxItems = 1
	s.full.Store(true)
	if _, err := s.Next(t.Context()); err == nil {
		t.Fatal("a split is not stored, but Next returned no error")
	}
	marks(2)(s)
	s.full.Store(false)
	for _, do := range []step{batch("+a:1"), delivered(), progress(2, 1, 0), batch("+b:1"), delivered(), progress(2, 2, 0)} {
		do(s)
	}
}

// TestRunWritesChanges checks the rows that the next process would read.
func TestRunWritesChanges(t *testing.T) {
	s := newFixture(t)
	stop := s.run()
	s.Upsert(version(instance("a"), 1), ledger.Debounced)
	testkit.EventuallyTrue(s, "the row is written", func() bool { return len(s.rows()) == 1 })
	s.Upsert(version(instance("b"), 1), ledger.Debounced)
	stop()
	s.open()
	counts(0, 2, 0)(s)
}

// TestManyChanges reports more objects concurrently than the buffer can hold.
func TestManyChanges(t *testing.T) {
	const sides, each = 8, 1500
	s := newFixture(t)
	s.maxItems = 1000
	stop := s.run()
	var wait sync.WaitGroup
	for side := range sides {
		wait.Go(func() {
			for i := range each {
				key := instance(fmt.Sprintf("w%d-%d", side, i))
				s.Upsert(version(key, 1), ledger.Immediate)
				if i%3 == 0 {
					s.Remove(key)
				}
			}
		})
	}
	received := map[item.Key]bool{}
	for removed := false; len(received) < sides*each*2/3 || !removed || s.Counts().Pending > 0; {
		s.next()
		for _, upserted := range s.handed.Upserts {
			received[upserted.Key] = true
		}
		for _, key := range s.handed.Deletes {
			delete(received, key)
		}
		s.delivered()
		if s.Counts().Pending == 0 {
			wait.Wait()
			removed = true
		}
	}
	stop()
	if counts := s.Counts(); counts.Known != sides*each*2/3 || len(received) != counts.Known {
		t.Errorf("counts = %+v, receiver has %d objects", counts, len(received))
	}
}

// TestUnreadableRows checks that an object whose row cannot be read, or its deletion, is sent again.
func TestUnreadableRows(t *testing.T) {
	spoilt := map[string]string{"no JSON": "{", "another version": `{"state":"shown"}`, "no digest": `{"pending":"upsert"}`, "empty": ""}
	for name, text := range spoilt {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			has("a", "b", "c")(s)
			for _, key := range []string{instance("a").String(), instance("c").String(), "Instance/nothing"} {
				s.must(s.table().Put(t.Context(), table.Row{Key: prefix + key, Value: []byte(text)}))
			}
			s.open()
			if got := s.Counts(); got.Unreadable != 3 || got.Known != 1 {
				t.Fatalf("%+v", got)
			}
			none(s)
			s.Upsert(version(instance("a"), 1), ledger.Immediate)
			s.Upsert(version(instance("b"), 1), ledger.Immediate)
			retain("a", "b")(s)
			batch("+a:1 -c")(s)
			s.delivered()
			rowsOf("a", "b")(s)
		})
	}
}

// TestUnreadableBatch checks that no object is lost that the sink may have received in a batch that cannot be read.
func TestUnreadableBatch(t *testing.T) {
	s := newFixture(t)
	has("a")(s)
	s.Upsert(version(instance("b"), 1), ledger.Immediate)
	s.next()
	before := s.handed
	s.must(s.table().Put(t.Context(), table.Row{Key: prefix + "batch", Value: []byte(`{"sequence":7,"entries":[{"key":"a"}]}`)}))
	s.open()
	retain("a")(s)
	batch("-b")(s)
	if s.handed.ID == before.ID || s.Counts().Unreadable != 1 {
		t.Errorf("batch %s after %s, %+v", s.handed.ID, before.ID, s.Counts())
	}
}

// TestKeyIsLost opens a ledger whose rows are encrypted with a lost key.
func TestKeyIsLost(t *testing.T) {
	s := newFixture(t)
	s.options = []table.Option{table.WithTransformer(namedKey("old"))}
	s.open()
	has("a", "b")(s)
	s.Upsert(version(instance("c"), 1), ledger.Immediate)
	s.next()
	s.options = []table.Option{table.WithTransformer(namedKey("new"))}
	s.open()
	if got := s.Counts(); got.Unreadable != 4 || got.Known != 0 || got.Pending != 0 {
		t.Fatalf("%+v", got)
	}
	s.Upsert(version(instance("a"), 1), ledger.Immediate)
	retain("a")(s)
	s.next()
	if len(s.handed.Upserts) != 1 || len(s.handed.Deletes) != 2 {
		t.Errorf("batch %q", words(s.handed))
	}
	s.delivered()
	rowsOf("a")(s)
}

// TestInvalidItemInARow checks that an item that cannot be decoded is left to the next list, and does not block the others.
func TestInvalidItemInARow(t *testing.T) {
	s := newFixture(t)
	s.Upsert(version(instance("a"), 1), ledger.Debounced)
	s.Upsert(version(instance("b"), 1), ledger.Debounced)
	s.must(s.Flush(t.Context()))
	s.must(s.table().Put(t.Context(), table.Row{Key: prefix + instance("a").String(), Value: []byte("{}\n{}")}))
	s.Expedite()
	batch("+b:1")(s)
	s.delivered()
	counts(1, 0, 0)(s)
	s.Upsert(version(instance("a"), 1), ledger.Immediate)
	batch("+a:1")(s)
}

// TestTooLarge checks that an object that is too large for a row is rejected once, and does not block the others.
func TestTooLarge(t *testing.T) {
	s := newFixture(t)
	large := version(instance("a"), strings.Repeat("x", 1<<20))
	s.Upsert(large, ledger.Immediate)
	s.Upsert(version(instance("b"), 1), ledger.Immediate)
	batch("+b:1")(s)
	s.delivered()
	s.open()
	s.Upsert(large, ledger.Immediate)
	s.Expedite()
	counts(1, 0, 1)(s)
	s.Upsert(version(instance("a"), 2), ledger.Immediate)
	batch("+a:2")(s)
}

// namedKey is an encryption key with a name.
type namedKey string

var errOtherKey = errors.New("encrypted with another key")

func (k namedKey) TransformToStorage(_ context.Context, plain []byte, _ value.Context) ([]byte, error) {
	return append([]byte(k), plain...), nil
}

func (k namedKey) TransformFromStorage(_ context.Context, encrypted []byte, _ value.Context) ([]byte, bool, error) {
	plain, found := strings.CutPrefix(string(encrypted), string(k))
	if !found {
		return nil, false, errOtherKey
	}
	return []byte(plain), false, nil
}
