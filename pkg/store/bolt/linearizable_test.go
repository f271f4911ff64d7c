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

// callers is how many clients make calls at once.
const callers = 8

// runCallers lets clients make calls at once, each a number of them, or without end if it is negative.
func runCallers(ctx context.Context, client *clientv3.Client, calls int, note func(notice) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for id := range callers {
		group.Go(func() error {
			return (&caller{id: id, client: client, note: note}).run(ctx, calls)
		})
	}
	return group.Wait()
}

// TestLinearizable holds the engine, and etcd for comparison, to answering concurrent clients as a store would that does
// one call after the other. Serializable reads are held to the same: there is one copy.
func TestLinearizable(t *testing.T) {
	for name, b := range backends {
		t.Run(name, func(t *testing.T) {
			client, _ := b(t, 0)
			h := newHistory()
			if err := runCallers(t.Context(), client.Client, 200, h.add); err != nil {
				t.Fatal(err)
			}
			if !linearizable(t, h.events) {
				t.Error("there is no order of the calls that explains the answers")
			}
		})
	}
}

// TestLinearizableAcrossKills kills the process of the store again and again while clients are at work. What they were
// answered stays true; what they were not answered has happened before the kill, or never.
func TestLinearizableAcrossKills(t *testing.T) {
	const rounds = 6
	path := filepath.Join(t.TempDir(), "store.db")
	h, abandoned := newHistory(), 0
	for round := range rounds {
		killRecorder(t, path, 40*(round+1), h)
		abandoned += h.abandon()
	}
	if abandoned == 0 {
		t.Error("no kill has met a call that was under way")
	}
	e := reopen(t, path)
	defer closeEngine(t, e)
	if err := runCallers(t.Context(), bolt.NewClient(t.Context(), e).Client, 20, h.add); err != nil {
		t.Fatal(err)
	}
	if !linearizable(t, h.events) {
		t.Error("there is no order of the calls that explains the answers")
	}
}

// killRecorder starts a process that makes calls, writes down what it says, and kills it some random time after a number
// of lines.
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
	for notices := json.NewDecoder(bufio.NewReader(output)); ; lines-- {
		var n notice
		if err := notices.Decode(&n); err != nil {
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

// recordStore names, to a child process, the file to make calls to until it is killed.
const recordStore = "SLIPSTREAM_TEST_RECORD_STORE"

// recordUntilKilled makes calls and says so on standard output: of each before it is made, and its answer.
func recordUntilKilled(path string) error {
	ctx := context.Background()
	e, err := bolt.Open(ctx, path, bolt.Options{})
	if err != nil {
		return err
	}
	var said sync.Mutex
	out := json.NewEncoder(os.Stdout)
	return runCallers(ctx, bolt.NewClient(ctx, e).Client, -1, func(n notice) error {
		said.Lock()
		defer said.Unlock()
		return out.Encode(n)
	})
}

// TestLinearizabilityCheckFindsFaults gives the check histories that no store may leave behind, and one that it may.
func TestLinearizabilityCheckFindsFaults(t *testing.T) {
	put := func(value int64) call { return call{Kind: callPut, Value: value} }
	get := call{Kind: callGet}
	swap := call{Kind: callCompareAndSet, Value: 9, Expect: 2}
	holds := func(revision int64, c cell) answer {
		return answer{Revision: revision, Succeeded: true, Cells: [keyCount]cell{c}}
	}
	first, second := cell{Value: 1, Mod: 2, Create: 2, Version: 1}, cell{Value: 9, Mod: 3, Create: 2, Version: 2}
	written, nothing, unknown := holds(2, cell{}), holds(1, cell{}), answer{Unknown: true}
	for name, c := range map[string]struct {
		history []step
		want    bool
	}{
		"one after the other":                   {[]step{{put(1), written}, {get, holds(2, first)}, {swap, holds(3, first)}, {get, holds(3, second)}}, true},
		"a read from before an answered write":  {[]step{{put(1), written}, {get, nothing}}, false},
		"a serializable read from before it":    {[]step{{put(1), written}, {call{Kind: callGet, Serializable: true}, nothing}}, false},
		"two swaps of one state succeed":        {[]step{{put(1), written}, {swap, holds(3, first)}, {swap, holds(4, first)}}, false},
		"a revision is given out twice":         {[]step{{put(1), written}, {swap, holds(2, first)}}, false},
		"an unanswered write happened":          {[]step{{put(1), unknown}, {get, holds(2, first)}}, true},
		"an unanswered write did not happen":    {[]step{{put(1), unknown}, {get, nothing}}, true},
		"an unanswered write happens too late":  {[]step{{put(1), unknown}, {get, nothing}, {get, holds(2, first)}}, false},
		"an unanswered write is seen and lost":  {[]step{{put(1), unknown}, {get, holds(2, first)}, {get, nothing}}, false},
		"half of a transaction is seen":         {[]step{{call{Kind: callPutAll, Value: 1}, written}, {call{Kind: callRange}, holds(2, first)}}, false},
		"a failed comparison takes a revision":  {[]step{{put(1), written}, {call{Kind: callCompareAndSet, Expect: 7}, answer{Revision: 3, Cells: [keyCount]cell{first}}}}, false},
		"a value comes back after its deletion": {[]step{{put(1), written}, {call{Kind: callDelete}, holds(3, first)}, {get, holds(3, first)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := linearizable(t, sequence(c.history)); got != c.want {
				t.Errorf("linearizable: %v, want %v", got, c.want)
			}
		})
	}
}

// step is a call with its answer.
type step struct {
	call   call
	answer answer
}

// sequence is the history of a client that makes its calls one after the other.
func sequence(steps []step) (events []porcupine.Event) {
	for id, each := range steps {
		events = append(events,
			porcupine.Event{Kind: porcupine.CallEvent, Value: each.call, Id: id},
			porcupine.Event{Kind: porcupine.ReturnEvent, Value: each.answer, Id: id})
	}
	return events
}

// TestLinearizabilityCheckFindsOneWrongAnswer changes one answer in what concurrent clients have recorded.
func TestLinearizabilityCheckFindsOneWrongAnswer(t *testing.T) {
	client, _ := onEngine(t, 0)
	h := newHistory()
	if err := runCallers(t.Context(), client.Client, 50, h.add); err != nil {
		t.Fatal(err)
	}
	for i, event := range h.events {
		told, ok := event.Value.(answer)
		if !ok || i < len(h.events)/2 || told.Cells == (answer{}.Cells) {
			continue
		}
		for key := range told.Cells {
			told.Cells[key].Value++
		}
		h.events[i].Value = told
		break
	}
	if linearizable(t, h.events) {
		t.Error("a value that nobody has written is explained")
	}
}
