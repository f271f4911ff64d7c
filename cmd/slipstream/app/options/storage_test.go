// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"
	"time"
)

// TestWorkingStateIsCompactedSooner checks the compaction of the working state. It is written far more often than objects, and no
// reader resumes from a revision that is minutes old.
func TestWorkingStateIsCompactedSooner(t *testing.T) {
	for flag, want := range map[string]time.Duration{"5m": 15 * time.Second, "1h": 15 * time.Second, "2s": 2 * time.Second} {
		opts := parse(t, "--etcd-compaction-interval="+flag)
		if got := opts.Storage.WorkEngine().CompactionInterval; got != want {
			t.Errorf("with %s the working state is compacted every %v, want %v", flag, got, want)
		}
	}
}

func TestArchiveFolder(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"in the data directory": {[]string{"--data-dir=/data"}, "/data/archive"},
		"one of its own":        {[]string{"--data-dir=/data", "--archive-dir=/archive"}, "/archive"},
		"none with etcd":        {[]string{"--storage-backend=etcd3"}, ""},
		"one with etcd":         {[]string{"--storage-backend=etcd3", "--archive-dir=/archive"}, "/archive"},
	} {
		if got := parse(t, test.arguments...).Storage.ArchiveFolder(); got != test.want {
			t.Errorf("%s: records are archived in %q, want %q", name, got, test.want)
		}
	}
}
