// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/backup"
)

func TestExitCode(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"done":                      {nil, 0},
		"failed":                    {errors.New("broken"), 1},
		"wrong flags":               {fmt.Errorf("running: %w", usageError{errors.New("--fast")}), 2},
		"a restore not finished":    {fmt.Errorf("%w: %w", backup.ErrUnfinished, os.ErrPermission), 3},
		"to be restarted":           {errRestart, 75},
		"so, and the socket failed": {errors.Join(errRestart, errors.New("closing the socket")), 75},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(tt.err); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}

// deepFolder creates a folder whose path has the given number of bytes.
func deepFolder(t *testing.T, bytes int) string {
	t.Helper()
	path := t.TempDir()
	for bytes-len(path) > 1 {
		path += "/" + strings.Repeat("x", min(200, bytes-len(path)-1))
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestUnfinishedRestore restores where a file of the old store cannot be moved aside: its path would be longer than
// Linux allows. The restore is committed then, and the next start finishes it.
func TestUnfinishedRestore(t *testing.T) {
	const longestPath, longestName = 4095, 255
	other, saved := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "backup.tar")
	t.Run("backup", func(t *testing.T) {
		s, _ := serving(t, other)
		s.putRow(t, 1)
		if code, _, said := execute(t, "", "backup", "--data-dir="+other, "-o", saved); code != 0 {
			t.Fatal(said)
		}
	})
	path := deepFolder(t, longestPath-longestName-2)
	stuck := writeFile(t, filepath.Join(path, "api.db-"+strings.Repeat("x", longestName-len("api.db-"))), "")
	code, _, said := execute(t, "", "restore", "--data-dir="+path, saved)
	if code != exitUnfinished || !strings.Contains(said, backup.ErrUnfinished.Error()) {
		t.Fatalf("exit code %d, want %d: %s", code, exitUnfinished, said)
	}
	if err := os.Remove(stuck); err != nil {
		t.Fatal(err)
	}
	t.Run("the next start", func(t *testing.T) { serving(t, path) })
	holdsRows(t, path, 1)
}
