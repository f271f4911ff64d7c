// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"
	"time"
)

// The working state is written far more often than objects, and nobody resumes where he was minutes ago.
func TestWorkingStateIsCompactedSooner(t *testing.T) {
	for flag, want := range map[string]time.Duration{"5m": 15 * time.Second, "1h": 15 * time.Second, "2s": 2 * time.Second} {
		opts := parse(t, "--etcd-compaction-interval="+flag)
		if got := opts.Storage.WorkEngine().CompactionInterval; got != want {
			t.Errorf("with %s the working state is compacted every %v, want %v", flag, got, want)
		}
	}
}
