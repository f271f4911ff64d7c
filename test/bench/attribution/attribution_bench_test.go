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
	// perSecond is the number of reviews or changes started per second.
	perSecond = 500
	// length is the duration of each measurement.
	length = 8 * time.Second
)

// BenchmarkAttribution measures one cluster with the audit and admission webhooks.
func BenchmarkAttribution(b *testing.B) {
	s := mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, Admission: true})
	measure := func(name string, run func(*testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure("Admission/path=direct", func(b *testing.B) { admission(b, s, direct(b, s)) })
	measure("Admission/path=aggregator", func(b *testing.B) { admission(b, s, aggregated(b, s)) })
	measure(fmt.Sprintf("Authors/users=%d", crowd), func(b *testing.B) { newAuthors(b, s).run(b) })
}

// paced starts work at the rate with limited concurrency, and returns the rate of completion.
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
