// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit"
)

// TestReleaseMemory leaves garbage that the runtime does not collect.
func TestReleaseMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	blocks := make([][]byte, 64)
	for i := range blocks {
		blocks[i] = make([]byte, 1<<20)
	}
	clear(blocks)
	if now := readMemory(); !now.worthReturning() {
		t.Fatalf("before: %+v", now)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var released atomic.Bool
	go func() {
		releaseMemoryEvery(ctx, 10*time.Millisecond, func(context.Context) { released.Store(true) })
		close(ended)
	}()
	testkit.EventuallyTrue(t, "the memory is returned", func() bool { return !readMemory().worthReturning() })
	testkit.EventuallyTrue(t, "the pages of the files are released", released.Load)
	cancel()
	<-ended
}

func TestFewFreeBytesAreKept(t *testing.T) {
	for _, m := range []memory{{free: minFree - 1}, {live: 2 << 30, free: 100 << 20}} {
		if m.worthReturning() {
			t.Errorf("%+v is returned", m)
		}
	}
}
