// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenBrowser checks that the code of a link is only in a file of this user, and not in the arguments of programs.
func TestOpenBrowser(t *testing.T) {
	dir := t.TempDir()
	arguments := filepath.Join(dir, "arguments")
	if err := syscall.Mkfifo(arguments, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$*\" > '"+arguments+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	const link = "http://127.0.0.1:1/#secret"
	remove := openBrowser(t.Context(), link)
	opened, err := os.ReadFile(arguments) // It waits for the program.
	if err != nil {
		t.Fatal(err)
	}
	path := string(opened)
	if strings.Contains(path, "secret") || !filepath.IsAbs(path) {
		t.Fatalf("the browser is called with %q", path)
	}
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), `content="0; url=`+link+`"`) {
		t.Errorf("the file has %q: %v", content, err)
	}
	for _, of := range []string{path, filepath.Dir(path)} {
		if found, err := os.Stat(of); err != nil || found.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may use %s: %v", of, err)
		}
	}
	remove()
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}
