// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

// followedOnBoth runs a test with a table that can be watched, on bbolt and on etcd.
func followedOnBoth(t *testing.T, test func(*testing.T, *clientv3.Client, *storetable.Table)) {
	t.Helper()
	for name, newClient := range map[string]func(*testing.T) *clientv3.Client{
		"bbolt": func(t *testing.T) *clientv3.Client { return bolttest.NewClient(t) },
		"etcd":  etcdClient,
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t)
			test(t, client, newTable(client))
		})
	}
}

func newTable(client *clientv3.Client) *storetable.Table {
	return storetable.New(client.KV, prefix, storetable.WithWatcher(client.Watcher), storetable.WithTransformer(encrypting{})).Table("facts")
}

// follower receives the notifications of Follow on demand.
type follower struct {
	received chan storetable.Notification
	// failed has the final error.
	failed chan error
	stop   context.CancelFunc
}

func follow(t *testing.T, table *storetable.Table) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{received: make(chan storetable.Notification), failed: make(chan error, 1), stop: cancel}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for received, err := range table.Follow(ctx) {
			if err != nil {
				f.failed <- err
				return
			}
			select {
			case f.received <- received:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}

func (f *follower) next(t *testing.T) storetable.Notification {
	t.Helper()
	select {
	case received := <-f.received:
		return received
	case err := <-f.failed:
		t.Fatal(err)
	case <-time.After(2 * time.Minute):
		t.Fatal("no notification was received")
	}
	return storetable.Notification{}
}

// rendered formats rows as key=value.
func rendered(rows []storetable.Row) (found []string) {
	for _, row := range rows {
		found = append(found, row.Key+"="+string(row.Value))
	}
	return found
}

func TestFollowTellsRowsAndThenPuts(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, client *clientv3.Client, table *storetable.Table) {
		put(t, table, row("a", "1"), row("b", "1"))
		put(t, newTable(client), row("a", "2"))
		put(t, storetable.New(client.KV, prefix, storetable.WithTransformer(encrypting{})).Table("facts2"), row("x", "1"))
		f := follow(t, table)
		if received := f.next(t); !received.Listed || !slices.Equal(rendered(received.Rows), []string{"a=2", "b=1"}) {
			t.Errorf("received %v at first, listed: %v", rendered(received.Rows), received.Listed)
		}
		if err := table.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		put(t, table, row("c", "1"), row("a", "3"))
		if received := f.next(t); received.Listed || !slices.Equal(rendered(received.Rows), []string{"c=1", "a=3"}) {
			t.Errorf("received %v after a put, listed: %v", rendered(received.Rows), received.Listed)
		}
	})
}

// TestFollowMissesNothing puts rows before, during and after a follower's list.
func TestFollowMissesNothing(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, _ *clientv3.Client, table *storetable.Table) {
		const before, writers, each = 600, 4, 100
		var rows []storetable.Row
		for i := range before {
			rows = append(rows, row(fmt.Sprintf("before/%04d", i), "x"))
		}
		put(t, table, rows...)
		group, ctx := errgroup.WithContext(t.Context())
		for w := range writers {
			group.Go(func() error {
				for i := range each {
					if err := table.Put(ctx, row(fmt.Sprintf("%d/%d", w, i), "x")); err != nil {
						return err
					}
				}
				return nil
			})
		}
		f := follow(t, table)
		seen := map[string]int{}
		for len(seen) < before+writers*each {
			for _, row := range f.next(t).Rows {
				seen[row.Key]++
			}
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		for key, times := range seen {
			if times != 1 {
				t.Errorf("row %s was received %d times", key, times)
			}
		}
	})
}

// TestFollowOutlivesCompaction compacts revisions that a slow follower has not received yet. etcd's client reads ahead
// for it; the store on bbolt does not, so that the follower has to list again.
func TestFollowOutlivesCompaction(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, client *clientv3.Client, table *storetable.Table) {
		f := follow(t, table)
		f.next(t)
		const rows = 50
		var last string
		for i := range rows {
			last = fmt.Sprintf("%04d", i)
			put(t, table, row(last, "x"))
		}
		answer, err := client.Get(t.Context(), table.FullKey(last))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Compact(t.Context(), answer.Header.Revision); err != nil {
			t.Fatal(err)
		}
		put(t, table, row("after", "x"))
		seen, listed := map[string]bool{}, false
		for len(seen) < rows+1 {
			received := f.next(t)
			listed = listed || received.Listed
			for _, row := range received.Rows {
				seen[row.Key] = true
			}
		}
		if len(client.Endpoints()) == 0 && !listed {
			t.Error("what was compacted was not listed again")
		}
	})
}

func TestFollowReportsRowsThatItCannotOpen(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, client *clientv3.Client, table *storetable.Table) {
		put(t, table, row("a", "1"))
		plain := storetable.New(client.KV, prefix).Table("facts")
		put(t, plain, row("b", "not encrypted"))
		f := follow(t, table)
		if received := f.next(t); !slices.Equal(rendered(received.Rows), []string{"a=1"}) || len(received.Unopened) != 1 {
			t.Errorf("listed %v and %v", rendered(received.Rows), received.Unopened)
		}
		put(t, plain, row("c", "not encrypted"))
		if received := f.next(t); len(received.Rows) != 0 || len(received.Unopened) != 1 || !errors.Is(received.Unopened[0], errWrongKey) {
			t.Errorf("received %v and %v", rendered(received.Rows), received.Unopened)
		}
		put(t, table, row("c", "1"))
		if received := f.next(t); !slices.Equal(rendered(received.Rows), []string{"c=1"}) {
			t.Errorf("received %v after a row that cannot be decrypted", rendered(received.Rows))
		}
	})
}

func TestFollowEndsWithItsReader(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, _ *clientv3.Client, table *storetable.Table) {
		put(t, table, row("a", "1"))
		others := goleak.IgnoreCurrent()
		listed := false
		for received, err := range table.Follow(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if listed {
				break
			}
			listed = received.Listed
			put(t, table, row("b", "1"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for _, err := range table.Follow(ctx) {
			last = err
			cancel()
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("the end of the context ended it with %v", last)
		}
		testkit.NoGoroutines(t, others)
	})
}

func TestFollowNeedsAWatcher(t *testing.T) {
	var got error
	for _, err := range storetable.New(bolttest.NewKV(t), prefix).Table("facts").Follow(t.Context()) {
		got = err
	}
	if got == nil {
		t.Error("a store that cannot be watched was followed")
	}
}

func TestDeleteRange(t *testing.T) {
	followedOnBoth(t, func(t *testing.T, client *clientv3.Client, table *storetable.Table) {
		put(t, table, row("a", ""), row("b/1", ""), row("b/2", ""), row("b0", ""), row("c", ""))
		revision := func() int64 {
			answer, err := client.Get(t.Context(), "/")
			if err != nil {
				t.Fatal(err)
			}
			return answer.Header.Revision
		}
		before := revision()
		if err := table.DeleteRange(t.Context(), "b/3", "b0"); err != nil || revision() != before {
			t.Errorf("nothing to delete: %v, revisions %d and %d", err, before, revision())
		}
		if err := table.DeleteRange(t.Context(), "b/", "b0"); err != nil {
			t.Fatal(err)
		}
		if got, want := scan(t, table, "", ""), []string{"a=", "b0=", "c="}; !slices.Equal(got, want) {
			t.Errorf("rows %q, want %q", got, want)
		}
		if table.DeleteRange(t.Context(), "", "b") == nil || table.DeleteRange(t.Context(), "b", "") == nil {
			t.Error("a range without an end was deleted")
		}
	})
}
