// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/bench/samples"
)

const (
	// sustainedObjects is the number of objects that are changed repeatedly.
	sustainedObjects = 1_000
	// sustainedLength is the duration of each burst.
	sustainedLength = 8 * time.Second
	sustainedRounds = 2
)

// sustained has writers change objects at the maximum rate, alternating without the server
// and with it, and measures the cost of the server for the writers, and the time from the
// last write until the branch has all writes. The writers use all available CPU, so the CPU
// time of all processes for a write is equivalent to the rate, and does not depend on other
// load on the machine.
func sustained(b *testing.B, m *mirror, p *population) {
	r := m.open(b)
	commits := r.Commits(b)
	var alone, beside burst
	for range sustainedRounds {
		m.stop(b)
		alone.add(p.burst(b, sustainedLength, func(burst) time.Time { return time.Time{} }))
		m.start(b)
		m.settled(b, p)

		server := m.server(b)
		before := server.cpu(b)
		with := p.burst(b, sustainedLength, func(u burst) time.Time { return u.arrived(b, r) })
		with.server = server.cpu(b) - before
		m.settled(b, p)
		with.verify(b, r)
		beside.add(with)
	}
	b.ReportMetric(alone.rate(), "alone-writes/s")
	b.ReportMetric(beside.rate(), "writes/s")
	b.ReportMetric(beside.rate()/alone.rate(), "writes/alone")
	b.ReportMetric(beside.cost(beside.total)/alone.cost(alone.total), "cpu/alone")
	b.ReportMetric(beside.cost(beside.server), "server-ms/change")
	b.ReportMetric(float64(beside.writes)/(beside.took+beside.drained).Seconds(), "mirrored/s")
	b.ReportMetric((beside.drained / sustainedRounds).Seconds(), "drain-s")
	b.ReportMetric(float64(r.Commits(b)-commits)/sustainedRounds, "commits")
}

// burst is the result of one burst of writes.
type burst struct {
	writes int
	// took is the duration of the writes, and drained the time after that until the branch had all of them.
	took, drained time.Duration
	// total and server are the CPU time of all processes and of the server, until the branch had all writes.
	total, server time.Duration
	// last is the last write of all, and newest is the last write of each object.
	last   *corev1.ConfigMap
	newest map[string]*corev1.ConfigMap
}

func (u *burst) add(other burst) {
	u.writes += other.writes
	u.took += other.took
	u.drained += other.drained
	u.total += other.total
	u.server += other.server
}

func (u *burst) rate() float64 { return float64(u.writes) / u.took.Seconds() }

// cost returns the CPU time of each write in milliseconds.
func (u *burst) cost(used time.Duration) float64 {
	return samples.Milliseconds(used) / float64(u.writes)
}

// burst changes objects for a time, each writer its own, and then waits for
// arrived, which returns the time at which the branch had all writes.
func (p *population) burst(b *testing.B, length time.Duration, arrived func(burst) time.Time) burst {
	b.Helper()
	sum := burst{newest: map[string]*corev1.ConfigMap{}}
	var mu sync.Mutex
	before, began := totalCPU(b), time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	for writer := range configmaps.Writers {
		group.Go(func() error {
			for number := writer; time.Since(began) < length; number = (number + configmaps.Writers) % sustainedObjects {
				object, err := p.Update(ctx, number)
				if err != nil {
					return err
				}
				mu.Lock()
				sum.note(object)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	ended := time.Now()
	sum.took = ended.Sub(began)
	sum.drained = max(arrived(sum).Sub(ended), 0)
	sum.total = totalCPU(b) - before
	return sum
}

func (u *burst) note(object *corev1.ConfigMap) {
	u.writes++
	u.newest[object.Name] = object
	if u.last == nil || newer(object, u.last) {
		u.last = object
	}
}

func newer(a, b *corev1.ConfigMap) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0
}

// verify fails unless the branch has the last write of every object.
func (u *burst) verify(b *testing.B, r *repository) {
	b.Helper()
	tip := r.Tip()
	for _, object := range u.newest {
		if held, err := r.holds(tip, object); err != nil || !held {
			b.Fatalf("last write of %s is not in Git (error: %v)", object.Name, err)
		}
	}
}

// arrived waits until the branch has the last write and returns the time, which is not after
// the call if the branch already has it.
func (u *burst) arrived(b *testing.B, r *repository) time.Time {
	b.Helper()
	tip, at := r.Tip(), time.Now()
	held, err := r.holds(tip, u.last)
	if err == nil && !held {
		at, err = r.arrived(b.Context(), tip, u.last)
	}
	if err != nil {
		b.Fatal(err)
	}
	return at
}
