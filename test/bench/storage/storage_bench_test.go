// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/configbutler/slipstream/test/bench/samples"
)

const (
	// many is the number of clients in benchmarks with more than one.
	many = 32
	// stored is the number of objects for reads.
	stored = 10_000
	// watchers is the number of watchers that receive each write of the fan-out.
	watchers = 50
	// fanOuts is the number of writes in a round of the fan-out.
	fanOuts = 30
)

// BenchmarkStorage compares both sides, with existing objects for reads.
func BenchmarkStorage(b *testing.B) {
	sides := newSides(b)
	for _, s := range sides {
		fill(b, s)
	}
	for _, each := range []struct {
		name    string
		workers int
		do      operation
	}{
		{"Create", 1, newCreate(1)},
		{"Create", many, newCreate(many)},
		{"Update", many, update},
		{"Get", 1, get},
		{"Get", many, get},
		{"List", 1, list},
	} {
		b.Run(fmt.Sprintf("%s/clients=%d", each.name, each.workers), func(b *testing.B) {
			compare(b, sides, each.workers, each.do)
		})
	}
	b.Run(fmt.Sprintf("FanOut/watchers=%d", watchers), func(b *testing.B) { fanOut(b, sides) })
}

// fill creates the objects for reads.
func fill(b *testing.B, s *side) {
	b.Helper()
	var group errgroup.Group
	for worker := range many {
		group.Go(func() error {
			for n := worker; n < stored; n += many {
				if err := s.Create(context.Background(), key("stored", n), newPod("stored", n), &example.Pod{}, 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatalf("failed to fill %s: %v", s.name, err)
	}
}

// newCreate returns an operation that creates objects in a folder of its own.
func newCreate(clients int) operation {
	var made atomic.Int64
	folder := fmt.Sprintf("created-%d", clients)
	return func(s *side, _, _ int) error {
		n := int(made.Add(1))
		return s.Create(context.Background(), key(folder, n), newPod(folder, n), &example.Pod{}, 0)
	}
}

// update updates the objects of the worker, one after the other.
func update(s *side, worker, n int) error {
	of := worker + many*(n%(stored/many))
	return s.GuaranteedUpdate(context.Background(), key("stored", of), &example.Pod{}, false, nil,
		storage.SimpleUpdate(func(held runtime.Object) (runtime.Object, error) {
			pod := held.(*example.Pod)
			pod.Annotations["changed"] = time.Now().String()
			return pod, nil
		}), nil)
}

func get(s *side, worker, n int) error {
	return s.Get(context.Background(), key("stored", (worker*7919+n*31)%stored), storage.GetOptions{}, &example.Pod{})
}

func list(s *side, _, _ int) error {
	found := &example.PodList{}
	if err := s.GetList(context.Background(), "/pods/stored/", everything(""), found); err != nil {
		return err
	}
	if len(found.Items) != stored {
		return fmt.Errorf("the list has %d objects", len(found.Items))
	}
	return nil
}

func everything(resourceVersion string) storage.ListOptions {
	return storage.ListOptions{ResourceVersion: resourceVersion, Predicate: storage.Everything, Recursive: true}
}

// fanOut measures the time from a write until the last watcher receives it.
func fanOut(b *testing.B, sides []*side) {
	audiences := []*audience{newAudience(b, sides[0]), newAudience(b, sides[1])}
	var took [2][]time.Duration
	for b.Loop() {
		for round := range rounds {
			for i := range sides {
				i = (i + round) % len(sides)
				for range fanOuts {
					took[i] = append(took[i], audiences[i].deliver(b))
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, s := range sides {
		b.ReportMetric(samples.Milliseconds(samples.Quantile(took[i], 0.5)), s.name+"-p50-ms")
		b.ReportMetric(samples.Milliseconds(samples.Quantile(took[i], 0.99)), s.name+"-p99-ms")
	}
	b.ReportMetric(samples.Ratio(samples.Quantile(took[0], 0.5), samples.Quantile(took[1], 0.5)), "p50/etcd")
	b.ReportMetric(samples.Ratio(samples.Quantile(took[0], 0.99), samples.Quantile(took[1], 0.99)), "p99/etcd")
}

// audience is the watchers of one side.
type audience struct {
	side  *side
	wrote int
	// received receives a value from each watcher for each event.
	received chan watch.EventType
}

func newAudience(b *testing.B, s *side) *audience {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	a := &audience{side: s, received: make(chan watch.EventType, watchers)}
	var running sync.WaitGroup
	b.Cleanup(running.Wait)
	b.Cleanup(cancel)
	version, err := s.GetCurrentResourceVersion(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for range watchers {
		w, err := s.Watch(ctx, "/pods/watched/", everything(fmt.Sprint(version)))
		if err != nil {
			b.Fatal(err)
		}
		running.Go(func() {
			defer w.Stop()
			for event := range w.ResultChan() {
				select {
				case a.received <- event.Type:
				case <-ctx.Done():
				}
			}
		})
	}
	return a
}

// deliver writes an object and waits until all watchers have received it.
func (a *audience) deliver(b *testing.B) time.Duration {
	b.Helper()
	a.wrote++
	began := time.Now()
	if err := a.side.Create(b.Context(), key("watched", a.wrote), newPod("watched", a.wrote), &example.Pod{}, 0); err != nil {
		b.Fatal(err)
	}
	for range watchers {
		if kind := <-a.received; kind != watch.Added {
			b.Fatalf("a watcher of %s received %s", a.side.name, kind)
		}
	}
	return time.Since(began)
}
