// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// sustainedObjects are changed over and over.
	sustainedObjects = 1_000
	// sustainedLength is how long the writers write at a time.
	sustainedLength = 8 * time.Second
	sustainedRounds = 2
)

// sustained lets writers change objects as fast as they can, in turn without the server and
// with it, and measures what the server costs them and how long it takes, after the
// last write, until the branch has all.
func sustained(b *testing.B, m *mirror, p *population) {
	r := m.open(b)
	commits := r.commits(b)
	var alone, beside burst
	var drained time.Duration
	for range sustainedRounds {
		m.stop(b)
		alone.add(p.burst(b))
		m.start(b)
		m.settled(b, p)

		with := p.burst(b)
		at, err := r.arrivedNow(b.Context(), with.last)
		if err != nil {
			b.Fatal(err)
		}
		m.settled(b, p)
		with.verify(b, r)
		beside.add(with)
		drained += max(at.Sub(with.ended), 0)
	}
	b.ReportMetric(alone.rate(), "alone-writes/s")
	b.ReportMetric(beside.rate(), "writes/s")
	b.ReportMetric(beside.rate()/alone.rate(), "writes/alone")
	b.ReportMetric(float64(beside.writes)/(beside.took+drained).Seconds(), "mirrored/s")
	b.ReportMetric((drained / sustainedRounds).Seconds(), "drain-s")
	b.ReportMetric(float64(r.commits(b)-commits)/sustainedRounds, "commits")
}

// burst is what writers did in a time.
type burst struct {
	writes int
	took   time.Duration
	ended  time.Time
	// last is the newest write of all, newest that of each object.
	last   *corev1.ConfigMap
	newest map[string]*corev1.ConfigMap
}

func (u *burst) add(other burst) {
	u.writes += other.writes
	u.took += other.took
}

func (u *burst) rate() float64 { return float64(u.writes) / u.took.Seconds() }

// burst changes objects for sustainedLength. Each writer has objects of its own.
func (p *population) burst(b *testing.B) burst {
	b.Helper()
	sum := burst{newest: map[string]*corev1.ConfigMap{}}
	var mu sync.Mutex
	began := time.Now()
	group, ctx := errgroup.WithContext(b.Context())
	for writer := range writers {
		group.Go(func() error {
			for number := writer; time.Since(began) < sustainedLength; number = (number + writers) % sustainedObjects {
				object, err := p.update(ctx, number)
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
	sum.ended = time.Now()
	sum.took = sum.ended.Sub(began)
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

// verify fails unless the branch has every object as it was last written.
func (u *burst) verify(b *testing.B, r *repository) {
	b.Helper()
	tip := r.tip()
	for _, object := range u.newest {
		if held, err := r.holds(tip, object); err != nil || !held {
			b.Fatalf("%s is not in Git as it was last written (error: %v)", object.Name, err)
		}
	}
}

// arrivedNow is like arrived for an object that the branch may have already: the time is
// then that of the call.
func (r *repository) arrivedNow(ctx context.Context, object *corev1.ConfigMap) (time.Time, error) {
	tip, now := r.tip(), time.Now()
	held, err := r.holds(tip, object)
	if held || err != nil {
		return now, err
	}
	return r.arrived(ctx, tip, object)
}
