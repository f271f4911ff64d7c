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
	// minFree is the free memory, in bytes, that is worth a collection, and minShare its least share of the live objects: with many
	// objects the runtime collects seldom, also while the server works.
	minFree  = 8 << 20
	minShare = 4
)

// releaseMemory returns free memory to the operating system while the server is at rest, and calls releasePages, which does so with the pages
// of the stores' files. The runtime itself keeps as much as it may need until its next collection, which at rest comes only every two
// minutes: after a start or a burst of changes, that is as much again as the live objects.
func releaseMemory(ctx context.Context, releasePages func(context.Context)) {
	releaseMemoryEvery(ctx, restInterval, releasePages)
}

// releaseMemoryEvery checks in an interval whether the server has been at rest since the last check.
func releaseMemoryEvery(ctx context.Context, interval time.Duration, releasePages func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	before := readMemory()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := readMemory()
		if now.collections == before.collections {
			releasePages(ctx)
			if now.worthReturning() {
				debug.FreeOSMemory()
				now = readMemory()
			}
		}
		before = now
	}
}

// memory is the state of the heap.
type memory struct {
	// collections is the number of collections so far.
	collections uint64
	// live are the bytes of the objects that were live at the last collection, free those that are free or were allocated since, and not
	// returned.
	live, free uint64
}

func (m memory) worthReturning() bool { return m.free >= max(minFree, m.live/minShare) }

func readMemory() memory {
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(samples)
	live, objects := samples[1].Value.Uint64(), samples[3].Value.Uint64()
	return memory{
		collections: samples[0].Value.Uint64(), live: live,
		free: samples[2].Value.Uint64() + objects - min(live, objects),
	}
}
