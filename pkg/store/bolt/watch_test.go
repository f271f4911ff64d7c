// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/metadata"

	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// receive returns the next response of a watch, and false if the watch has ended.
func receive(t *testing.T, watch clientv3.WatchChan) (clientv3.WatchResponse, bool) {
	t.Helper()
	select {
	case response, open := <-watch:
		return response, open
	case <-time.After(testkit.Timeout):
		t.Fatal("watch sent no response")
		return clientv3.WatchResponse{}, false
	}
}

// events formats the next n events of a watch as revision:key=value(previous), with a minus for a delete.
func events(t *testing.T, watch clientv3.WatchChan, n int) (got []string) {
	t.Helper()
	for len(got) < n {
		response, open := receive(t, watch)
		if !open || response.Err() != nil {
			t.Fatalf("watch ended after %q: %v", got, response.Err())
		}
		for _, event := range response.Events {
			text := fmt.Sprintf("%d:%s=%s", event.Kv.ModRevision, event.Kv.Key, event.Kv.Value)
			if event.Type == clientv3.EventTypeDelete {
				text = fmt.Sprintf("%d:-%s", event.Kv.ModRevision, event.Kv.Key)
			}
			if event.PrevKv != nil {
				text += fmt.Sprintf("(%s)", event.PrevKv.Value)
			}
			got = append(got, text)
		}
	}
	return got
}

func TestWatchedEvents(t *testing.T) {
	history := []string{"2:/a/1=x", "3:/a/1=y(x)", "4:/b/1=x", "5:-/a/1(y)", "6:/a/2=1", "6:/a/3=2"}
	without := func(before string) string { text, _, _ := strings.Cut(before, "("); return text }
	tests := map[string]struct {
		key     string
		options []clientv3.OpOption
		want    []string
	}{
		"all from the start": {"/", opts(clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV()), history},
		"from a revision":    {"/", opts(clientv3.WithPrefix(), clientv3.WithRev(4), clientv3.WithPrevKV()), history[2:]},
		"a prefix":           {"/b/", opts(clientv3.WithPrefix(), clientv3.WithRev(1)), []string{"4:/b/1=x"}},
		"a key":              {"/a/1", opts(clientv3.WithRev(1), clientv3.WithPrevKV()), []string{history[0], history[1], history[3]}},
		"from a key on":      {"/a/3", opts(clientv3.WithFromKey(), clientv3.WithRev(1)), []string{"4:/b/1=x", "6:/a/3=2"}},
		"no previous":        {"/a/1", opts(clientv3.WithRev(3)), []string{without(history[1]), without(history[3])}},
		"puts only":          {"/a/1", opts(clientv3.WithRev(1), clientv3.WithFilterDelete()), []string{"2:/a/1=x", "3:/a/1=y"}},
		"deletes only":       {"/a/1", opts(clientv3.WithRev(1), clientv3.WithFilterPut()), []string{"5:-/a/1"}},
		"a future revision":  {"/", opts(clientv3.WithPrefix(), clientv3.WithRev(8)), []string{"8:/end=2"}},
		"from now":           {"/", opts(clientv3.WithPrefix(), clientv3.WithCreatedNotify()), []string{"7:/end=1", "8:/end=2"}},
	}
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	set(t, e, "/a/1", "x")
	set(t, e, "/a/1", "y")
	set(t, e, "/b/1", "x")
	unset(t, e, "/a/1")
	runTxn(t, e, nil, clientv3.OpPut("/a/2", "1"), clientv3.OpPut("/a/3", "2"))
	watches := map[string]clientv3.WatchChan{}
	for name, test := range tests {
		watches[name] = client.Watch(t.Context(), test.key, test.options...)
	}
	if response, _ := receive(t, watches["from now"]); !response.Created || response.Header.Revision != 6 {
		t.Errorf("first response %+v, want created at revision 6", response)
	}
	set(t, e, "/end", "1")
	set(t, e, "/end", "2")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := events(t, watches[name], len(test.want)); !slices.Equal(got[:len(test.want)], test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func opts(options ...clientv3.OpOption) []clientv3.OpOption { return options }

// TestWatchesSeeEveryChange runs fast and slow watches during writes, with more changes than the memory buffer holds.
func TestWatchesSeeEveryChange(t *testing.T) {
	t.Parallel() // It mostly waits for commits.
	const writers, each, watchers = 8, 2500, 6
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	group, ctx := errgroup.WithContext(t.Context())
	for w := range watchers {
		watch := client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(1))
		group.Go(func() error {
			if w%2 == 0 { // A slow watch starts to read after the last write.
				err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
					return e.Revision() == 1+writers*each, nil
				})
				if err != nil {
					return err
				}
			}
			return checkGapless(watch, 2, 1+writers*each)
		})
	}
	for w := range writers {
		group.Go(func() error {
			for i := range each {
				key := fmt.Sprintf("/%d/%d", w, i%100)
				if _, err := e.Put(ctx, &pb.PutRequest{Key: []byte(key), Value: []byte(strings.Repeat("x", 100))}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// checkGapless reads events until the last revision. It fails if a revision is missing or an event is duplicated.
func checkGapless(watch clientv3.WatchChan, first, last int64) error {
	next := first
	seen := map[string]bool{}
	for response := range watch {
		if response.Err() != nil {
			return response.Err()
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision == next {
				clear(seen)
				next++
			}
			if key := string(event.Kv.Key); event.Kv.ModRevision != next-1 || seen[key] {
				return fmt.Errorf("event of %s at revision %d, want one at %d", key, event.Kv.ModRevision, next)
			}
			seen[string(event.Kv.Key)] = true
		}
		if next > last {
			return nil
		}
	}
	return fmt.Errorf("watch ended before revision %d", next)
}

func TestWatchOfCompactedHistory(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	for i := range 9 {
		set(t, e, "/a", fmt.Sprint(i))
	}
	paused := client.Watch(t.Context(), "/a", clientv3.WithRev(2))
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: 5}); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{1, 4, 5} {
		watch := client.Watch(t.Context(), "/a", clientv3.WithRev(from))
		response, _ := receive(t, watch)
		if !errors.Is(response.Err(), rpctypes.ErrCompacted) || response.CompactRevision != 5 {
			t.Errorf("watch from %d: %v, compact revision %d", from, response.Err(), response.CompactRevision)
		}
		if _, open := receive(t, watch); open {
			t.Errorf("watch from %d sent a response after its error", from)
		}
	}
	if got := events(t, client.Watch(t.Context(), "/a", clientv3.WithRev(6)), 1); got[0] != "6:/a=4" {
		t.Errorf("watch from after the compacted revision got %q", got)
	}
	// The paused watch may still send events that it had read before the compaction, but must not skip any.
	next := int64(2)
	for next <= 10 {
		response, open := receive(t, paused)
		if !open || errors.Is(response.Err(), rpctypes.ErrCompacted) {
			return
		}
		for _, event := range response.Events {
			if event.Kv.ModRevision != next {
				t.Fatalf("paused watch got revision %d, want %d", event.Kv.ModRevision, next)
			}
			next++
		}
	}
}

// TestProgressComesAfterEvents requests progress continuously during writes. No notification may be ahead of the events
// sent before it.
func TestProgressComesAfterEvents(t *testing.T) {
	const changes = 2000
	e := openEngine(t, bolt.Options{ProgressInterval: time.Millisecond})
	client := bolt.NewClient(t.Context(), e)
	watch := client.Watch(t.Context(), "/a/", clientv3.WithPrefix(), clientv3.WithProgressNotify())
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		for i := range changes {
			key := fmt.Sprintf("/%c/%d", 'a'+i%2, i)
			if _, err := e.Put(ctx, &pb.PutRequest{Key: []byte(key)}); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error {
		for ctx.Err() == nil {
			if err := client.RequestProgress(ctx); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
		}
		return nil
	})
	lastEvent, reported, reports := int64(0), int64(0), 0
	for reported < 1+changes {
		response, _ := receive(t, watch)
		for _, event := range response.Events {
			if event.Kv.ModRevision <= reported {
				t.Fatalf("event of revision %d after progress %d", event.Kv.ModRevision, reported)
			}
			lastEvent = event.Kv.ModRevision
		}
		if response.IsProgressNotify() {
			if response.Header.Revision < max(lastEvent, reported) {
				t.Fatalf("progress %d after event %d and progress %d", response.Header.Revision, lastEvent, reported)
			}
			reported, reports = response.Header.Revision, reports+1
		}
	}
	cancel()
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if lastEvent < changes || reports < 2 {
		t.Errorf("last event %d, %d reports", lastEvent, reports)
	}
}

func TestProgressIsRequestedByGroup(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	mine := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("source", "mine"))
	requested := client.Watch(mine, "/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	other := client.Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	receive(t, requested)
	receive(t, other)
	if err := client.RequestProgress(mine); err != nil {
		t.Fatal(err)
	}
	if response, _ := receive(t, requested); !response.IsProgressNotify() || response.Header.Revision != 1 {
		t.Errorf("progress %+v, want revision 1", response)
	}
	set(t, e, "/a", "")
	if response, _ := receive(t, other); response.IsProgressNotify() {
		t.Error("a watch of another group received progress")
	}
}

// TestPeriodicProgress checks that a watch gets one periodic notification, and another one only after new changes, including
// changes of keys outside its range.
func TestPeriodicProgress(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	e := openEngine(t, bolt.Options{Clock: clock, CompactionInterval: -1, ProgressInterval: time.Minute})
	client := bolt.NewClient(t.Context(), e)
	watch := client.Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
	receive(t, watch)
	testkit.EventuallyTrue(t, "the watch and the lease expiry wait", func() bool { return clock.Waiters() == 2 })
	clock.Step(time.Minute)
	if response, _ := receive(t, watch); !response.IsProgressNotify() || response.Header.Revision != 1 {
		t.Errorf("progress %+v, want revision 1", response)
	}
	for range 10 {
		clock.Step(time.Minute) // Without changes, only requested progress is reported.
		if err := client.RequestProgress(t.Context()); err != nil {
			t.Fatal(err)
		}
		receive(t, watch)
	}
	set(t, e, "/a", "")
	if response, _ := receive(t, watch); len(response.Events) != 1 {
		t.Errorf("%+v, want the event", response)
	}
	if clock.Waiters() != 1 {
		t.Error("the watch waits, although its reader has everything")
	}
	set(t, e, "another", "")
	testkit.EventuallyTrue(t, "the watch and the lease expiry wait", func() bool { return clock.Waiters() == 2 })
	clock.Step(time.Minute)
	response, _ := receive(t, watch)
	if !response.IsProgressNotify() || response.Header.Revision != 3 {
		t.Errorf("progress %+v, want revision 3", response)
	}
}

func TestWatchEndsWithItsContextAndItsClient(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	defer testkit.NoGoroutines(t, goleak.IgnoreCurrent())
	client := bolt.NewClient(t.Context(), e)
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := client.Watch(ctx, "/", clientv3.WithPrefix())
	unread := client.Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithRev(1))
	set(t, e, "/a", "")
	cancel()
	for open := true; open; {
		_, open = receive(t, cancelled)
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for open := true; open; {
		_, open = receive(t, unread)
	}
}

// TestWatchStartsAtItsCall writes immediately after a watch is requested. The watch must include the write.
func TestWatchStartsAtItsCall(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	client := bolt.NewClient(t.Context(), e)
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		watch := client.Watch(ctx, "/", clientv3.WithPrefix())
		revision := set(t, e, "/a", fmt.Sprint(i))
		if got, want := events(t, watch, 1), fmt.Sprintf("%d:/a=%d", revision, i); got[0] != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		cancel()
	}
}

// TestEventsOfOneRevisionStayTogether restarts a watch after every response, as a client that lost its connection does.
func TestEventsOfOneRevisionStayTogether(t *testing.T) {
	const transactions, keys = 40, 100 // more than are read from the log at once
	e := openEngine(t, bolt.Options{})
	path := e.Path()
	client := bolt.NewClient(t.Context(), e)
	for i := range transactions {
		var ops []clientv3.Op
		for k := range keys {
			ops = append(ops, clientv3.OpPut(fmt.Sprintf("/%03d", k), fmt.Sprint(i)))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	closeEngine(t, e) // A reopened store has no events in memory.
	e = reopen(t, path)
	defer closeEngine(t, e)
	client = bolt.NewClient(t.Context(), e)
	seen, next := 0, int64(1)
	for seen < transactions*keys {
		ctx, cancel := context.WithCancel(t.Context())
		response, _ := receive(t, client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(next)))
		cancel()
		seen += len(response.Events)
		last := response.Events[len(response.Events)-1].Kv.ModRevision
		if response.Header.Revision < last || len(response.Events)%keys != 0 {
			t.Fatalf("response up to %d has %d events, the last of revision %d", response.Header.Revision, len(response.Events), last)
		}
		next = response.Header.Revision + 1
	}
}
