// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// workers is the number of concurrent clients.
const workers = 8

// runWorkers runs concurrent workers, each with the given number of calls, or an unlimited number if calls is negative.
func runWorkers(ctx context.Context, client *clientv3.Client, calls int, record func(callEvent) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for id := range workers {
		group.Go(func() error {
			return (&worker{id: id, client: client, record: record}).run(ctx, calls)
		})
	}
	return group.Wait()
}

// TestLinearizable checks that concurrent calls to the engine, and to etcd for comparison, are linearizable. This includes
// serializable reads, because there is one copy of the data.
func TestLinearizable(t *testing.T) {
	for name, b := range backends {
		t.Run(name, func(t *testing.T) {
			client, _ := b(t, 0)
			h := newHistory()
			if err := runWorkers(t.Context(), client.Client, 200, h.add); err != nil {
				t.Fatal(err)
			}
			if !linearizable(t, h.events) {
				t.Error("history is not linearizable")
			}
		})
	}
}

// TestLinearizableAcrossKills repeatedly kills the process of the store during calls. Acknowledged calls must be durable.
// Calls without a response took effect before the kill or never.
func TestLinearizableAcrossKills(t *testing.T) {
	const rounds = 6
	path := filepath.Join(t.TempDir(), "store.db")
	h, abandoned := newHistory(), 0
	for round := range rounds {
		killRecorder(t, path, 40*(round+1), h)
		abandoned += h.abandon()
	}
	if abandoned == 0 {
		t.Error("no call was interrupted by a kill")
	}
	e := reopen(t, path)
	defer closeEngine(t, e)
	if err := runWorkers(t.Context(), bolt.NewClient(t.Context(), e).Client, 20, h.add); err != nil {
		t.Fatal(err)
	}
	if !linearizable(t, h.events) {
		t.Error("history is not linearizable")
	}
}

// killRecorder starts a process that makes calls, records the events it prints, and kills it a random time after the given
// number of lines.
func killRecorder(t *testing.T, path string, lines int, h *history) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), recordStore+"="+path)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for events := json.NewDecoder(bufio.NewReader(output)); ; lines-- {
		var n callEvent
		if err := events.Decode(&n); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			break
		}
		if err := h.add(n); err != nil {
			t.Fatal(err)
		}
		if lines == 0 {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = child.Process.Kill() })
		}
	}
	if err := child.Wait(); err == nil || child.ProcessState.Exited() {
		t.Fatalf("the process was not killed: %v", err)
	}
}

// recordStore is the environment variable with the file that a child process uses until it is killed.
const recordStore = "SLIPSTREAM_TEST_RECORD_STORE"

// recordUntilKilled makes calls and prints their events on standard output.
func recordUntilKilled(path string) error {
	ctx := context.Background()
	e, err := bolt.Open(ctx, path, bolt.Options{})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	return runWorkers(ctx, bolt.NewClient(ctx, e).Client, -1, func(n callEvent) error {
		mu.Lock()
		defer mu.Unlock()
		return out.Encode(n)
	})
}

// TestLinearizabilityCheckFindsFaults checks histories that are not linearizable, and some that are.
func TestLinearizabilityCheckFindsFaults(t *testing.T) {
	put := func(value int64) call { return call{Kind: callPut, Value: value} }
	get := call{Kind: callGet}
	swap := call{Kind: callCompareAndSet, Value: 9, Expect: 2}
	holds := func(revision int64, c keyState) result {
		return result{Revision: revision, Succeeded: true, Keys: [keyCount]keyState{c}}
	}
	first, second := keyState{Value: 1, Mod: 2, Create: 2, Version: 1}, keyState{Value: 9, Mod: 3, Create: 2, Version: 2}
	written, nothing, unknown := holds(2, keyState{}), holds(1, keyState{}), result{Unknown: true}
	for name, c := range map[string]struct {
		history []step
		want    bool
	}{
		"one after the other": {
			[]step{{put(1), written}, {get, holds(2, first)}, {swap, holds(3, first)}, {get, holds(3, second)}}, true,
		},
		"a read from before an acked write":  {[]step{{put(1), written}, {get, nothing}}, false},
		"a serializable read from before it": {[]step{{put(1), written}, {call{Kind: callGet, Serializable: true}, nothing}}, false},
		"two swaps of one state succeed":     {[]step{{put(1), written}, {swap, holds(3, first)}, {swap, holds(4, first)}}, false},
		"a revision is assigned twice":       {[]step{{put(1), written}, {swap, holds(2, first)}}, false},
		"an unacked write happened":          {[]step{{put(1), unknown}, {get, holds(2, first)}}, true},
		"an unacked write did not happen":    {[]step{{put(1), unknown}, {get, nothing}}, true},
		"an unacked write happens too late":  {[]step{{put(1), unknown}, {get, nothing}, {get, holds(2, first)}}, false},
		"an unacked write is seen and lost":  {[]step{{put(1), unknown}, {get, holds(2, first)}, {get, nothing}}, false},
		"half of a transaction is seen": {
			[]step{{call{Kind: callPutAll, Value: 1}, written}, {call{Kind: callRange}, holds(2, first)}}, false,
		},
		"a failed comparison takes a revision": {
			[]step{{put(1), written}, {call{Kind: callCompareAndSet, Expect: 7}, result{Revision: 3, Keys: [keyCount]keyState{first}}}}, false,
		},
		"a value comes back after its deletion": {
			[]step{{put(1), written}, {call{Kind: callDelete}, holds(3, first)}, {get, holds(3, first)}}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := linearizable(t, sequence(c.history)); got != c.want {
				t.Errorf("linearizable: %v, want %v", got, c.want)
			}
		})
	}
}

// step is a call with its result.
type step struct {
	call   call
	result result
}

// sequence returns the history of a single client.
func sequence(steps []step) (events []porcupine.Event) {
	for id, each := range steps {
		events = append(events,
			porcupine.Event{Kind: porcupine.CallEvent, Value: each.call, Id: id},
			porcupine.Event{Kind: porcupine.ReturnEvent, Value: each.result, Id: id})
	}
	return events
}

// TestLinearizabilityCheckFindsOneWrongResult changes one result in a history of concurrent clients.
func TestLinearizabilityCheckFindsOneWrongResult(t *testing.T) {
	client, _ := onEngine(t, 0)
	h := newHistory()
	if err := runWorkers(t.Context(), client.Client, 50, h.add); err != nil {
		t.Fatal(err)
	}
	for i, event := range h.events {
		got, ok := event.Value.(result)
		if !ok || i < len(h.events)/2 || got.Keys == (result{}.Keys) {
			continue
		}
		for key := range got.Keys {
			got.Keys[key].Value++
		}
		h.events[i].Value = got
		break
	}
	if linearizable(t, h.events) {
		t.Error("history with a value that was never written is linearizable")
	}
}
