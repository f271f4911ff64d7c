// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/store/backup"
)

// BenchmarkBackup backs up 200 MB during concurrent writes. It reports the longest write, and the growth of the heap.
func BenchmarkBackup(b *testing.B) {
	const rows, size = 200, 1 << 20
	s := open(b, filepath.Join(b.TempDir(), "data"))
	defer s.close(b)
	value := make([]byte, size)
	for i := range rows {
		_, _ = rand.Read(value) // Never fails.
		if err := put(b.Context(), s.API, fmt.Sprintf("/large/%d", i), string(value)); err != nil {
			b.Fatal(err)
		}
	}
	idle := writeUntil(b, s, time.After(3*time.Second))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done := make(chan time.Time)
	var longest time.Duration
	var writer sync.WaitGroup
	writer.Go(func() { longest = writeUntil(b, s, done) })
	written := int64(0)
	for b.Loop() {
		counter := &counter{}
		if err := backup.Write(counter, s.Stores, backup.Options{Now: moment}); err != nil {
			b.Fatal(err)
		}
		written = counter.n
	}
	b.SetBytes(written)
	runtime.ReadMemStats(&after)
	close(done)
	writer.Wait()
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-write")
	b.ReportMetric(float64(idle.Microseconds())/1000, "ms-longest-write-without")
	b.ReportMetric(float64(int64(after.HeapSys)-int64(before.HeapSys))/(1<<20), "MiB-heap-growth")
}

// writeUntil writes small rows sequentially, and returns the longest duration of a write.
func writeUntil(b *testing.B, s *server, done <-chan time.Time) (longest time.Duration) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return longest
		default:
		}
		start := time.Now()
		if err := put(b.Context(), s.API, fmt.Sprintf("/small/%d", i%100), "x"); err != nil {
			b.Error(err)
			return longest
		}
		longest = max(longest, time.Since(start))
	}
}

// counter counts and discards written bytes.
type counter struct{ n int64 }

var _ io.Writer = &counter{}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
