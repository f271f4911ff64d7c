// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"testing"
	"time"

	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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

// TestWatchCaches checks which kinds have a watch cache, unless a flag says otherwise.
func TestWatchCaches(t *testing.T) {
	for _, test := range []struct {
		flag, resource string
		cached         bool
	}{
		{"--storage-backend=bbolt", "environments", true},
		{"--storage-backend=bbolt", "syncstatuses", true},
		{"--storage-backend=bbolt", "gitrepoconfigs", false},
		{"--watch-cache-sizes=gitrepoconfigs.configbutler.ai#100", "gitrepoconfigs", true},
		{"--watch-cache-sizes=environments.configbutler.ai#0", "environments", false},
		{"--watch-cache-sizes=changes.configbutler.ai#100", "changes", false},
		{"--storage-backend=etcd3", "gitrepoconfigs", true},
		{"--storage-backend=etcd3", "changes", false},
	} {
		opts := parse(t, test.flag)
		if err := opts.Complete(); err != nil {
			t.Fatal(err)
		}
		sizes, err := genericoptions.ParseWatchCacheSizes(opts.Storage.Etcd.WatchCacheSizes)
		if err != nil {
			t.Fatal(err)
		}
		size, set := sizes[v1alpha1.Resource(test.resource)]
		if cached := !set || size > 0; cached != test.cached {
			t.Errorf("%s: %s have a watch cache: %t", test.flag, test.resource, cached)
		}
	}
}
