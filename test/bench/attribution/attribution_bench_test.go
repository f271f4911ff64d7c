// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// reviewRate is the number of reviews that are started per second, changeRate that of changes: a tenth more than are to be reached.
	reviewRate, changeRate = 500, 550
	// length is the duration of each measurement.
	length = 8 * time.Second
)

// BenchmarkAdmission measures admission reviews.
func BenchmarkAdmission(b *testing.B) {
	s := mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, Admission: true})
	for b.Loop() {
		admission(b, s)
	}
	b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
}

// BenchmarkAuthors measures changes of many users on a cluster with the audit webhook, as docs/attribution.md recommends, and with both.
func BenchmarkAuthors(b *testing.B) {
	for name, admission := range map[string]bool{"audit": false, "both": true} {
		b.Run("webhooks="+name, func(b *testing.B) {
			s := mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, Admission: admission})
			for b.Loop() {
				newAuthors(b, s).run(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// paced starts work at a rate per second with limited concurrency, and returns the rate of completion.
func paced(b *testing.B, perSecond, atOnce int, work func(ctx context.Context, number int, due time.Time) error) (rate float64) {
	b.Helper()
	count := perSecond * int(length/time.Second)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(atOnce)
	began := time.Now()
	for number := range count {
		due := began.Add(time.Duration(number) * time.Second / time.Duration(perSecond))
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
