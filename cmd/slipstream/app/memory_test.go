// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit"
)

// TestReleaseMemory leaves garbage that no collection of the runtime would remove for long.
func TestReleaseMemory(t *testing.T) {
	blocks := make([][]byte, 64)
	for i := range blocks {
		blocks[i] = make([]byte, 1<<20)
	}
	clear(blocks)
	if _, free := memoryUse(); free < minFree {
		t.Fatalf("%d bytes are free before, want more than %d", free, minFree)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		releaseMemoryEvery(ctx, 10*time.Millisecond)
		close(ended)
	}()
	testkit.EventuallyTrue(t, "the memory is returned", func() bool {
		_, free := memoryUse()
		return free < minFree
	})
	cancel()
	<-ended
}
