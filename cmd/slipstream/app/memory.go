// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// restInterval is how long the server must have collected no garbage to be at rest.
	restInterval = 30 * time.Second
	// minFree is the free memory, in bytes, that is worth a collection: about a tenth of what the server uses at rest.
	minFree = 8 << 20
)

// releaseMemory returns free memory to the operating system while the server is at rest. The runtime itself keeps as much as it may need
// until its next collection, which at rest comes only every two minutes: after a start or a burst of changes, that is as much again as the
// live objects.
func releaseMemory(ctx context.Context) { releaseMemoryEvery(ctx, restInterval) }

func releaseMemoryEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	collections, _ := memoryUse()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, free := memoryUse()
		if now == collections && free >= minFree {
			debug.FreeOSMemory()
			now, _ = memoryUse()
		}
		collections = now
	}
}

// memoryUse returns the number of collections so far, and the bytes of the heap that are free or garbage and not returned.
func memoryUse() (collections, free uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	live, objects := samples[2].Value.Uint64(), samples[3].Value.Uint64()
	return samples[0].Value.Uint64(), samples[1].Value.Uint64() + objects - min(live, objects)
}
