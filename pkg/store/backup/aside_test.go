// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package backup_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// ended returns a copy of an open server's directory, as it is after a kill.
func (s *server) ended(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(path, os.DirFS(s.dir.Path())); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReplacedFilesAreKept restores over the files of a server that was killed after a restore was committed. The
// replaced files hold its writes until then.
func TestReplacedFilesAreKept(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "data"))
	defer s.close(t)
	s.fill(t, "/state", "old")
	saved := s.backup(t, "")
	s.fill(t, "/state", "new")
	target := backup.Target{Dir: s.dir.Path(), KeyFile: keyFile, Replaced: func() backup.Replaced {
		return backup.Replaced{datadir.APIFile: backup.StateOf(s.API), datadir.WorkFile: backup.StateOf(s.Work)}
	}}
	staged, err := backup.Stage(t.Context(), target, bytes.NewReader(saved), moment)
	if err != nil {
		t.Fatal(err)
	}
	s.fill(t, "/state", "newer")
	killed := s.ended(t)
	dir, err := datadir.Open(t.Context(), killed) // It installs the restored files.
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join(killed, filepath.Base(staged.Aside)), "newer")
	holds(t, killed, "old")
}

// holds fails unless both stores of a folder have the given content.
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
