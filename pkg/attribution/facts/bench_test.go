// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
)

// stored returns the size of all rows.
func stored(b *testing.B, client *clientv3.Client) (bytes int) {
	b.Helper()
	for row, err := range table(client).Scan(b.Context(), "") {
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(row.Value)
	}
	return bytes
}

// differentFacts returns facts with random uids and IDs, which do not compress.
func differentFacts(n int) []attribution.Fact {
	facts := newFacts("a", n)
	for i := range facts {
		facts[i].ID, facts[i].UID = string(uuid.NewUUID()), uuid.NewUUID()
	}
	return facts
}

// BenchmarkRecord records facts as the audit webhook does: a batch at a time, durable before the next.
func BenchmarkRecord(b *testing.B) {
	for _, size := range []int{1, 50, 400} {
		b.Run(fmt.Sprintf("facts=%d", size), func(b *testing.B) {
			client := bolttest.NewClient(b)
			log, facts := newLog(client), differentFacts(size)
			for b.Loop() {
				if err := log.Record(b.Context(), facts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "facts/s")
			b.ReportMetric(float64(stored(b, client))/float64(b.N*size), "bytes/fact")
		})
	}
}

// BenchmarkEnqueue enqueues as fast as Run writes, and counts the transactions.
func BenchmarkEnqueue(b *testing.B) {
	client := bolttest.NewClient(b)
	faulty := newFaultyKV(client, nil)
	log, facts := newLog(client), differentFacts(1000)
	b.ResetTimer()
	stop := start(b, log.Run)
	written := 0
	for n := 0; n < b.N; n += len(facts) {
		log.Enqueue(facts...)
		// Keep half of the queue free.
		for limit := n - maxQueued/2; written < limit; {
			written = faulty.attempts() * len(facts)
			<-time.After(time.Millisecond)
		}
	}
	stop()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "facts/s")
	b.ReportMetric(float64(b.N)/float64(faulty.attempts()), "facts/transaction")
}

// BenchmarkToFollower measures the time from recording or enqueuing facts until the leader receives them.
func BenchmarkToFollower(b *testing.B) {
	stores := map[string]func(testing.TB) *clientv3.Client{"bbolt": bolttest.NewClient, "etcd": newEtcd}
	for _, store := range []string{"bbolt", "etcd"} {
		b.Run(store, func(b *testing.B) {
			client := stores[store](b)
			leader, other := newLog(client), newLog(client)
			arrived := make(chan time.Time, 1)
			start(b, func(ctx context.Context) {
				leader.Follow(ctx, func([]attribution.Fact, bool) { arrived <- time.Now() })
			})
			<-arrived
			start(b, other.Run)
			facts := differentFacts(20)
			b.Run("record", func(b *testing.B) {
				latencies(b, arrived, func() error { return other.Record(b.Context(), facts) })
			})
			b.Run("enqueue", func(b *testing.B) {
				latencies(b, arrived, func() error { other.Enqueue(facts...); return nil })
			})
		})
	}
}

// pause is longer than the time that Run waits after a write, so that each write starts at once.
const pause = 20 * time.Millisecond

func latencies(b *testing.B, arrived <-chan time.Time, submit func() error) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := submit(); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-arrived).Sub(began))
		<-time.After(pause)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
}
