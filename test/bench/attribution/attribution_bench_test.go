// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// perSecond is how many reviews or changes are begun in a second.
	perSecond = 500
	// length is how long that goes on.
	length = 8 * time.Second
)

// BenchmarkAttribution measures one cluster that reports and asks.
func BenchmarkAttribution(b *testing.B) {
	s := mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, Admission: true})
	measure := func(name string, run func(*testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // how long it took to measure says nothing
		})
	}
	measure("Admission/path=direct", func(b *testing.B) { admission(b, s, direct(b, s)) })
	measure("Admission/path=aggregator", func(b *testing.B) { admission(b, s, aggregated(b, s)) })
	measure(fmt.Sprintf("Authors/people=%d", crowd), func(b *testing.B) { newAuthors(b, s).run(b) })
}

// paced begins work at the rate, with so much of it open at once at the most, and returns the rate at which it ended.
func paced(b *testing.B, atOnce int, work func(ctx context.Context, number int, due time.Time) error) (rate float64) {
	b.Helper()
	const count = int(perSecond * length / time.Second)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(atOnce)
	began := time.Now()
	for number := range count {
		due := began.Add(time.Duration(number) * time.Second / perSecond)
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
		group.Go(func() error { return work(ctx, number, due) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(count) / time.Since(began).Seconds()
}
