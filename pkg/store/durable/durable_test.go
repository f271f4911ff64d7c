// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/configbutler/slipstream/pkg/store/durable"
)

func TestWriteFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	if err := durable.WriteFile(path, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "content" {
		t.Errorf("content = %q, error %v", content, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("info = %+v, error %v", info, err)
	}
	if err := durable.WriteFile(path, strings.NewReader("other")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error for an existing file = %v", err)
	}
	failure := errors.New("no")
	if err := durable.WriteFile(filepath.Join(folder, "other"), iotest.ErrReader(failure)); !errors.Is(err, failure) {
		t.Errorf("error = %v", err)
	}
}

func TestSyncDir(t *testing.T) {
	folder := t.TempDir()
	if err := durable.SyncDir(folder); err != nil {
		t.Error(err)
	}
	if err := durable.SyncDir(filepath.Join(folder, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error = %v", err)
	}
}
