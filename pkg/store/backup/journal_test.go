// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// ended is a copy of an open server's directory, which is what a kill leaves.
func (s *server) ended(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(path, os.DirFS(s.dir.Path())); err != nil {
		t.Fatal(err)
	}
	return path
}

// journals are the names of the journals in a folder.
func journals(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.Contains(entry.Name(), "journal") {
			names = append(names, entry.Name())
		}
	}
	return names
}

var bothJournals = []string{"api.db-journal-a", "api.db-journal-b", "work.db-journal-a", "work.db-journal-b"}

// TestJournalGoesWithItsFile restores over files that were not closed. Their journals are kept with them, and none is
// beside the restored files.
func TestJournalGoesWithItsFile(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data"))
	defer s.close(t)
	s.fill(t, "/state", "old")
	saved := s.backup(t, "")
	s.fill(t, "/state", "new")
	target := backup.Target{Dir: s.dir.Path(), KeyFile: keyFile, Replaced: func() backup.Replaced {
		return backup.Replaced{datadir.APIFile: backup.StateOf(s.API), datadir.WorkFile: backup.StateOf(s.Work)}
	}}
	damaged := s.ended(t)
	staged, err := backup.Stage(t.Context(), target, bytes.NewReader(saved), moment)
	if err != nil {
		t.Fatal(err)
	}
	s.fill(t, "/state", "newer")
	decided := s.ended(t)
	tests := map[string]struct {
		path    string
		prepare func(t *testing.T, path string)
		// before is what the files that were replaced hold, nothing if they cannot be opened.
		before string
	}{
		"killed once the restore was decided": {path: decided, prepare: func(*testing.T, string) {}, before: "newer"},
		"with journals that cannot be read": {path: damaged, prepare: func(t *testing.T, path string) {
			for _, name := range bothJournals {
				if err := os.Truncate(filepath.Join(path, name), 100); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := restore(t, path, bytes.NewReader(saved)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.prepare(t, tt.path)
			dir, err := datadir.Open(t.Context(), tt.path) // It finishes what is decided.
			if err != nil {
				t.Fatal(err)
			}
			if err := dir.Close(); err != nil {
				t.Fatal(err)
			}
			aside := filepath.Join(tt.path, filepath.Base(staged.Aside))
			if got := journals(t, tt.path); len(got) > 0 {
				t.Errorf("beside the restored files are %v", got)
			}
			if got := journals(t, aside); !slices.Equal(got, bothJournals) {
				t.Errorf("with what was replaced are %v, want %v", got, bothJournals)
			}
			if tt.before != "" {
				holds(t, aside, tt.before)
			}
			holds(t, tt.path, "old")
		})
	}
}

// holds fails unless both stores of a folder hold a state.
func holds(t *testing.T, folder, state string) {
	t.Helper()
	for _, name := range []string{datadir.APIFile, datadir.WorkFile} {
		engine, err := bolt.Open(t.Context(), filepath.Join(folder, name), bolt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, engine); !maps.Equal(got, map[string]string{"/state": state}) {
			t.Errorf("%s holds %v, want %q", engine.Path(), got, state)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}
