// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestRandomLives lets processes make random calls and die at random writes. In the end the receiver must have the state of the cluster.
func TestRandomLives(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := &world{
				fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 0)),
				cluster: map[item.Key]int{}, received: map[item.Key]int{}, newest: map[item.Key]int{}, batches: map[string]map[item.Key]int{},
			}
			w.maxItems = 1 + w.random.IntN(5)
			for range 12 {
				w.runProcess()
			}
			w.end()
		})
	}
}

// world is a cluster, a receiver, and a ledger between them. Versions of objects increase; 0 is a deleted object.
type world struct {
	*fixture
	random            *rand.Rand
	last              int
	cluster, received map[item.Key]int
	// newest has the newest version of each object that the receiver has received; batches, the content of each batch.
	newest  map[item.Key]int
	batches map[string]map[item.Key]int
}

// runProcess runs a process.
func (w *world) runProcess() {
	w.Helper()
	w.process.Start(1+w.random.IntN(25), nil)
	w.process.LoseResponse(w.random.IntN(2) == 0)
	err := w.tryOpen()
	for steps := 0; err == nil && steps < 150; steps++ {
		err = w.step()
	}
	if err != nil && !errors.Is(err, testkit.ErrDead) {
		w.Fatal(err)
	}
}

func (w *world) step() error {
	switch w.random.IntN(14) {
	case 0, 1, 2:
		w.change()
	case 3:
		w.vanish()
	case 4:
		w.clock.Step(time.Duration(w.random.IntN(15)) * time.Second)
	case 5:
		return w.Flush(w.Context())
	case 6:
		w.list(ledger.Urgency(w.random.IntN(3)))
	case 7:
		w.Expedite()
	case 8:
		w.MarkRun("run")
		if p := w.Progress("run"); p.Done > p.Total {
			w.Errorf("progress = %+v", p)
		}
	case 9:
		w.maxItems = 1 + w.random.IntN(5)
	case 10:
		w.ApplyConfig()
	default:
		return w.deliver(true)
	}
	return nil
}

func (w *world) any() item.Key {
	if w.random.IntN(4) == 0 {
		return definition(fmt.Sprintf("d%d", w.random.IntN(3)))
	}
	return instance(fmt.Sprintf("w%d", w.random.IntN(8)))
}

func (w *world) change() {
	key := w.any()
	w.last++
	w.cluster[key] = w.last
	w.Upsert(version(key, w.last), ledger.Urgency(w.random.IntN(2)))
}

func (w *world) vanish() {
	key := w.any()
	delete(w.cluster, key)
	if w.random.IntN(3) > 0 { // Otherwise the change is not observed.
		w.Remove(key)
	}
}

// list reports all existing objects.
func (w *world) list(how ledger.Urgency) {
	for key, v := range w.cluster {
		w.Upsert(version(key, v), how)
	}
	present := func(key item.Key) bool { return w.cluster[key] > 0 }
	w.Retain(item.Instance, "apps/v1", "Deployment", present)
	w.Retain(item.CustomResourceDefinition, "", "", present)
}

// next returns the next batch. It advances the clock while it waits, because due changes may cancel each other, and others may not be due
// yet.
func (w *world) next() (item.Batch, error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				if w.clock.HasWaiters() {
					w.clock.Step(time.Second)
				}
			}
		}
	}()
	return w.Next(w.Context())
}

// deliver delivers the next batch, if there is one, part by part.
func (w *world) deliver(rejects bool) error {
	if w.Counts().OldestDue.IsZero() {
		return nil
	}
	batch, err := w.next()
	if err != nil {
		return err
	}
	w.handed = batch
	content := w.content(batch)
	keys := w.keysOf()
	w.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for part := range slices.Chunk(keys, 1+w.random.IntN(len(keys))) {
		switch w.random.IntN(6) {
		case 0: // The receiver does not respond.
			return nil
		case 1:
			if rejects {
				if err := w.Rejected(w.Context(), batch.ID, part); err != nil {
					return err
				}
				continue
			}
		}
		w.receive(part, content)
		if w.random.IntN(2) == 0 {
			w.change()
		}
		if err := w.Delivered(w.Context(), batch.ID, part); err != nil {
			return err
		}
	}
	return nil
}

// content returns the content of a batch. It must be the same whenever the batch is returned.
func (w *world) content(batch item.Batch) map[item.Key]int {
	content := map[item.Key]int{}
	for _, key := range batch.Deletes {
		content[key] = 0
	}
	for _, upserted := range batch.Upserts {
		var v int
		_, _ = fmt.Sscan(upserted.Labels["version"], &v)
		content[upserted.Key] = v
	}
	before, again := w.batches[batch.ID]
	if !again {
		w.batches[batch.ID] = content
		before = content
	}
	for key, v := range content {
		if was, there := before[key]; !there || was != v {
			w.Errorf("batch %s has version %d of %s, previously %d (%v)", batch.ID, v, key, was, there)
		}
		if key.Kind != batch.Kind {
			w.Errorf("batch of kind %s has the key %s", batch.Kind, key)
		}
	}
	if len(content) != len(batch.Upserts)+len(batch.Deletes) || len(content) > w.maxItems {
		w.Errorf("batch %+v", batch)
	}
	return content
}

// receive applies a part of a batch to the receiver.
func (w *world) receive(keys []item.Key, content map[item.Key]int) {
	for _, key := range keys {
		v := content[key]
		if v == 0 {
			delete(w.received, key)
			continue
		}
		if v < w.newest[key] {
			w.Errorf("%s: version %d after %d", key, v, w.newest[key])
		}
		w.newest[key], w.received[key] = v, v
	}
}

// end runs a process that does not die until everything is delivered.
func (w *world) end() {
	w.Helper()
	w.process.Start(0, nil)
	w.open()
	w.list(ledger.Immediate)
	w.Expedite()
	total := w.MarkRun("end")
	if pending := w.Counts().Pending; total != pending {
		w.Errorf("%d marked of %d pending changes", total, pending)
	}
	count := len(w.cluster)
	for range 10_000 {
		if w.Counts().Pending == 0 {
			break
		}
		w.must(w.deliver(false))
		w.clock.Step(time.Second)
	}
	if diff := cmp.Diff(w.cluster, w.received); diff != "" {
		w.Errorf("receiver differs from the cluster (-cluster +receiver):\n%s", diff)
	}
	if got := w.Progress("end"); got.Done != total || got.Total != total {
		w.Errorf("progress = %+v, want %d", got, total)
	}
	if got := w.Counts(); got.Known != len(w.cluster) || got.Rejected != 0 || got.Unreadable != 0 {
		w.Errorf("%+v, want %d objects", got, count)
	}
	if len(w.rows()) != len(w.cluster) {
		w.Errorf("rows that are left: %q", w.rows())
	}
}
