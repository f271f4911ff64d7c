// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// filesPrefix is the prefix of the keys in the files of [encryptedDirectory].
const filesPrefix = "/registry"

// TestFilesKeepTheirPrefix checks that a server keeps the prefix that its files have, and uses the default for new files.
func TestFilesKeepTheirPrefix(t *testing.T) {
	for path, want := range map[string]string{encryptedDirectory(t, ""): filesPrefix, t.TempDir(): "/slipstream"} {
		opts := optionsOn(path)
		s, err := openStores(t.Context(), opts.Storage)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil {
			t.Error(err)
		}
		if got := opts.Storage.Etcd.StorageConfig.Prefix; got != want {
			t.Errorf("the prefix is %q, want %q", got, want)
		}
	}
}

// TestMigrationKeepsThePrefix checks that a migration uses the prefix of the files and refuses another one, with which nothing
// could be decrypted.
func TestMigrationKeepsThePrefix(t *testing.T) {
	dir, err := datadir.Open(t.Context(), encryptedDirectory(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	for given, refused := range map[string]bool{"": false, "/registry": false, "/slipstream": true, "/other": true} {
		opts := optionsOn(dir.Path())
		sets := opts.Flags()
		if given != "" {
			if err := sets.FlagSet("storage").Set("etcd-prefix", given); err != nil {
				t.Fatal(err)
			}
		}
		m := &migrateCommand{options: opts, storage: opts.Storage}
		got, err := m.prefixOfFiles(t.Context(), dir)
		if !refused && (err != nil || got != filesPrefix) {
			t.Errorf("with %q it is %q, %v", given, got, err)
		}
		if want := "--etcd-prefix=" + given + " must be " + filesPrefix; refused && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with %q the error is %v, want %q", given, err, want)
		}
	}
}
