// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package backup_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// What a child process restores, and where to.
const (
	crashDirectory = "SLIPSTREAM_TEST_RESTORE_DIRECTORY"
	crashArchive   = "SLIPSTREAM_TEST_RESTORE_ARCHIVE"
)

// TestRestoreInChild is the child process of TestKilledRestore. Without an archive it only opens the directory.
func TestRestoreInChild(t *testing.T) {
	path := os.Getenv(crashDirectory)
	if path == "" {
		t.Skip("plays the victim of TestKilledRestore")
	}
	name := os.Getenv(crashArchive)
	if name == "" {
		open(t, path).close(t)
		return
	}
	saved, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restore(t, path, bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
}

// inChild runs a child that is killed at a step, or not at all if the step is empty.
func inChild(t *testing.T, path, saved, step string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRestoreInChild$")
	child.Env = append(os.Environ(), crashDirectory+"="+path, crashArchive+"="+saved)
	if step != "" {
		child.Env = append(child.Env, "SLIPSTREAM_FAILPOINTS="+step)
	}
	out, err := child.CombinedOutput()
	status := child.ProcessState.Sys().(syscall.WaitStatus)
	if killed := status.Signaled() && status.Signal() == syscall.SIGKILL; killed != (step != "") {
		t.Fatalf("killed at %q: %v (%v)\n%s", step, killed, err, out)
	}
	if step == "" && err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestKilledRestore kills a restore at each step, and the start that completes it as well. Afterwards, the directory has
// both old stores or both new ones, with the matching key.
func TestKilledRestore(t *testing.T) {
	steps := []struct {
		name, step string
		restored   bool
		// again are the steps at which the next start is killed, too.
		again []string
	}{
		{name: "begun", step: "restore-begun=kill"},
		{name: "unpacked", step: "restore-unpacked=kill"},
		{name: "one store raised", step: "restore-raised=kill"},
		{name: "both stores raised", step: "restore-raised=kill@2"},
		{name: "staged", step: "restore-staged=kill"},
		{name: "decided", step: "restore-decided=kill", restored: true, again: []string{
			"restore-aside=kill", "restore-moved=kill", "restore-aside=kill@2", "restore-moved=kill@2",
			"restore-aside=kill@3", "restore-moved=kill@3", "restore-installed=kill",
		}},
		{name: "first file aside", step: "restore-aside=kill", restored: true, again: []string{"restore-aside=kill", "restore-moved=kill"}},
		{name: "first file moved", step: "restore-moved=kill", restored: true, again: []string{"restore-aside=kill"}},
		{name: "second file aside", step: "restore-aside=kill@2", restored: true},
		{name: "second file moved", step: "restore-moved=kill@2", restored: true},
		{name: "third file aside", step: "restore-aside=kill@3", restored: true},
		{name: "third file moved", step: "restore-moved=kill@3", restored: true},
		{name: "all files moved", step: "restore-installed=kill", restored: true},
	}
	for _, tt := range steps {
		for _, again := range append([]string{""}, tt.again...) {
			t.Run(fmt.Sprintf("%s, then %q", tt.name, again), func(t *testing.T) {
				path, saved, before := prepareCrash(t)
				inChild(t, path, saved, tt.step)
				if again != "" {
					inChild(t, path, "", again)
				}
				checkAfterCrash(t, path, tt.restored, before)
				inChild(t, path, saved, "") // It can be done again, whatever is there.
				checkAfterCrash(t, path, true, before)
			})
		}
	}
}

// prepareCrash returns a directory with writes after its backup, the backup's file, and the last revision.
func prepareCrash(t *testing.T) (path, saved string, revision int64) {
	t.Helper()
	folder := t.TempDir()
	path, saved = filepath.Join(folder, "data"), filepath.Join(folder, "backup")
	s := open(t, path)
	key := s.dir.File(keyFile)
	s.fill(t, "/state", "old")
	writeFile(t, key, "old")
	writeFile(t, saved, string(s.backup(t, key)))
	s.fill(t, "/state", "new")
	s.fill(t, "/more", "new")
	writeFile(t, key, "new")
	revision = s.API.Revision()
	s.close(t)
	return path, saved, revision
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// checkAfterCrash opens the directory and checks its content.
func checkAfterCrash(t *testing.T, path string, restored bool, before int64) {
	t.Helper()
	s := open(t, path)
	defer s.close(t)
	want, wantKey := map[string]string{"/state": "new", "/more": "new"}, "new"
	if restored {
		want, wantKey = map[string]string{"/state": "old"}, "old"
	}
	for _, e := range []*bolt.Engine{s.API, s.Work} {
		if got := content(t, e); !maps.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", e.Path(), got, want)
		}
		if e.Revision() < before || restored && e.CompactRevision() <= before {
			t.Errorf("%s is at %d, compacted %d; it was at %d", e.Path(), e.Revision(), e.CompactRevision(), before)
		}
	}
	key, err := os.ReadFile(s.dir.File(keyFile))
	if string(key) != wantKey {
		t.Errorf("the key is %q, %v, want %q", key, err, wantKey)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name == "incoming" || len(name) > 6 && name[:6] == "ready-" {
			t.Errorf("%s was left", name)
		}
	}
}
