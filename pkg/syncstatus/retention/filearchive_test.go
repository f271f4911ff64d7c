// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestCrashBetweenArchiveAndDeletion crashes a process between two deletions. The next one deletes what was archived, and does not
// archive it again.
func TestCrashBetweenArchiveAndDeletion(t *testing.T) {
	for _, later := range []time.Duration{time.Minute, 31 * 24 * time.Hour} {
		t.Run(later.String(), func(t *testing.T) {
			s := newFixture(t, append(many(250), policy())...)
			for _, deletions := range []int{0, 3, 99, 1, 40} {
				if err := crashAfter(t, s, deletions); err == nil {
					t.Fatal("no error")
				}
				s.clock.Step(later)
			}
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			names := archivedNames(t, s.folder)
			slices.Sort(names)
			if distinct := len(slices.Compact(slices.Clone(names))); len(names) != 250 || distinct != 250 {
				t.Errorf("the archive has %d records, %d of them different, want 250", len(names), distinct)
			}
			if left := s.remaining(); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

// TestLargeRecords checks that batches of large records are small, so that reading the last one is quick.
func TestLargeRecords(t *testing.T) {
	large := func(r *v1alpha1.SyncStatus) {
		r.Status.WorkloadNames = slices.Repeat([]string{strings.Repeat("w", 250)}, 4000)
	}
	s := newFixture(t, append(many(10, large), policy())...)
	for range 3 {
		before := len(archivedNames(t, s.folder))
		if err := crashAfter(t, s, 2); err == nil {
			t.Fatal("no error")
		}
		if more := len(archivedNames(t, s.folder)) - before; more > 4 {
			t.Errorf("%d records of 1 MiB are archived before the first of them is deleted", more)
		}
	}
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := archivedNames(t, s.folder); len(names) != 10 || len(s.remaining()) > 0 {
		t.Errorf("archived %q, left %q", names, s.remaining())
	}
}

// crashAfter sweeps until a number of records have been deleted.
func crashAfter(t *testing.T, s *fixture, deletions int) error {
	ctx, die := context.WithCancel(t.Context())
	defer die()
	s.process.Start(deletions+1, die)
	defer s.process.Start(0, nil)
	return s.sweeper().Sweep(ctx)
}

// TestIncompleteLine has a line that was being written when the process crashed. It is truncated, and its record is archived again.
func TestIncompleteLine(t *testing.T) {
	tears := map[string]func(content string) string{
		"the last line":            func(content string) string { return content[:len(content)-10] },
		"the end of the last line": func(content string) string { return strings.TrimSuffix(content, "\n") },
		"the only line":            func(string) string { return `{"kind":"SyncSt` },
		"a long line":              func(content string) string { return content + strings.Repeat("x", 9<<20) },
		"nothing":                  func(content string) string { return content },
		"everything":               func(string) string { return "" },
	}
	for name, tear := range tears {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, append(many(2), policy())...)
			if err := crashAfter(t, s, 0); err == nil {
				t.Fatal("no error")
			}
			path := filepath.Join(s.folder, thisMonth)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tear(string(content))), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []string{"teams/shop-00000", "teams/shop-00001"}
			if diff := cmp.Diff(want, archivedNames(t, s.folder)); diff != "" || len(s.remaining()) > 0 {
				t.Errorf("left %q; archive (-want +got):\n%s", s.remaining(), diff)
			}
		})
	}
}

// TestForeignLinesAndFilesStay has complete lines and files that the archive has not written.
func TestForeignLinesAndFilesStay(t *testing.T) {
	s := newFixture(t, append(many(1), policy())...)
	if err := os.Mkdir(s.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{thisMonth: "not JSON\n{}\n", "syncstatuses-2026-12-001.jsonl.gz": "compressed", "notes": "mine"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		got, err := os.ReadFile(filepath.Join(s.folder, name))
		if grown := name == thisMonth; err != nil || !strings.HasPrefix(string(got), content) || grown != (len(got) > len(content)) {
			t.Errorf("%s has %q, error %v", name, got, err)
		}
	}
}

func TestFilesOfTheArchive(t *testing.T) {
	tests := []struct {
		name string
		// there are the existing files, with their sizes in MiB.
		there map[string]int64
		now   time.Time
		want  string
	}{
		{"the first", nil, today, "syncstatuses-2026-11-001.jsonl"},
		{"one of this month", map[string]int64{"syncstatuses-2026-11-001.jsonl": 1}, today, "syncstatuses-2026-11-001.jsonl"},
		{"one of the last month", map[string]int64{"syncstatuses-2026-10-003.jsonl": 1}, today, "syncstatuses-2026-11-001.jsonl"},
		{
			"a month that is over in another time zone", nil,
			today.AddDate(0, 0, 10).In(time.FixedZone("", 7*3600)), "syncstatuses-2026-12-001.jsonl",
		},
		{"a full one", map[string]int64{"syncstatuses-2026-11-001.jsonl": 64}, today, "syncstatuses-2026-11-002.jsonl"},
		{
			"more than a thousand", map[string]int64{"syncstatuses-2026-11-999.jsonl": 64, "syncstatuses-2026-11-1000.jsonl": 1}, today,
			"syncstatuses-2026-11-1000.jsonl",
		},
		{
			"a clock that was put back", map[string]int64{"syncstatuses-2026-11-001.jsonl": 1}, today.AddDate(0, -1, 0),
			"syncstatuses-2026-11-001.jsonl",
		},
		{
			"a clock that was put back, and a full one", map[string]int64{"syncstatuses-2026-11-001.jsonl": 64}, today.AddDate(0, -1, 0),
			"syncstatuses-2026-11-002.jsonl",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t, record("shop", "a", 1000), policy())
			if err := os.Mkdir(s.folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, size := range tt.there {
				makeSparse(t, filepath.Join(s.folder, name), size<<20)
			}
			s.clock.SetTime(tt.now)
			if err := s.sweeper().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(filepath.Join(s.folder, tt.want))
			if err != nil || info.Size() != tt.there[tt.want]<<20+int64(lineLength(t)) {
				t.Errorf("%s: %v, error %v", tt.want, info, err)
			}
			if left := s.remaining(); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

// makeSparse creates a sparse file that ends with a newline.
func makeSparse(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteAt([]byte("\n"), size-1); err != nil {
		t.Fatal(err)
	}
}

// lineLength returns the length of the line of the record of TestFilesOfTheArchive.
func lineLength(t *testing.T) int {
	t.Helper()
	s := newFixture(t, record("shop", "a", 1000), policy())
	if err := s.sweeper().Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(s.folder, thisMonth))
	if err != nil {
		t.Fatal(err)
	}
	return len(content)
}
