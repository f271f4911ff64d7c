// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// disguises returns the marker and its usual encodings within a longer text.
func disguises() [][]byte {
	found := [][]byte{[]byte(marker), []byte(hex.EncodeToString([]byte(marker)))}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + marker))
		// The groups at the ends depend on the surrounding text.
		found = append(found, []byte(encoded[4:len(encoded)-4]))
	}
	return found
}

// leaks reports whether stored bytes contain the marker.
func leaks(stored []byte) bool {
	return slices.ContainsFunc(disguises(), func(each []byte) bool { return bytes.Contains(stored, each) })
}

// leakingFiles returns the files in a folder that contain the marker.
func leakingFiles(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if leaks(content) {
			names = append(names, entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// boltRows returns the rows of a store file that is not open.
func boltRows(t *testing.T, path string) map[string][]byte {
	t.Helper()
	engine, err := bolt.Open(t.Context(), path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	return rows(t, bolt.NewClient(t.Context(), engine).KV, "/slipstream")
}

// rows returns the stored rows with a prefix.
func rows(t *testing.T, kv clientv3.KV, prefix string) map[string][]byte {
	t.Helper()
	response, err := kv.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, row := range response.Kvs {
		found[string(row.Key)] = row.Value
	}
	return found
}

// allEncryptedBy fails if a row is not encrypted with a key, or if a part of the store has no rows.
func allEncryptedBy(t *testing.T, stored map[string][]byte, key string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(stored)), func(name string) bool { return strings.HasPrefix(name, part) }) {
			t.Errorf("no rows with prefix %s", part)
		}
	}
	for name, value := range stored {
		if by := encryption.EncryptedBy(value); !strings.Contains(by, key) {
			t.Errorf("%s is encrypted with %q, want %s", name, by, key)
		}
		if leaks(value) {
			t.Errorf("%s contains the marker", name)
		}
	}
}

// Parts of the stores.
const (
	repositories = "/slipstream/configbutler.ai/gitrepoconfigs/"
	records      = "/slipstream/configbutler.ai/gitdestinationstatuses/"
	outbox       = "/slipstream-work/"
)

// TestDefaultEncryption searches the files of a server with the default configuration.
func TestDefaultEncryption(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{})
	s.mirrorASecret(t)
	folder := s.Env(devcluster.EnvDataDir)
	if found := leakingFiles(t, folder); len(found) != 0 {
		t.Errorf("files with the marker: %q", found)
	}
	key, err := encryption.Rotate(t.Context(), encryption.Folder{Path: folder})
	if err != nil {
		t.Fatal(err)
	}
	s.waitForRewrite(t, "objects", "work")
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	allEncryptedBy(t, boltRows(t, filepath.Join(folder, "api.db")), key, repositories, records)
	allEncryptedBy(t, boltRows(t, filepath.Join(folder, "work.db")), key, outbox)
	s.refuseToStartWithoutKeys(t, folder)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.acceptPushes(t)
	if found := leakingFiles(t, folder); len(found) != 0 {
		t.Errorf("files with the marker: %q", found)
	}
}

// waitForRewrite waits until rows of the stores have been encrypted again and no stale row is left.
func (s *testCluster) waitForRewrite(t *testing.T, stores ...string) {
	t.Helper()
	for _, store := range stores {
		testkit.EventuallyWithin(t, deadline, "the rows of "+store+" to be encrypted again", func(ctx context.Context) error {
			done, err := s.metric(ctx, "encryption_rewritten_rows_total", store)
			if err != nil {
				return err
			}
			stale, err := s.metric(ctx, "encryption_stale_rows", store)
			if err == nil && (done == 0 || stale > 0) {
				err = fmt.Errorf("%v rewritten, %v stale", done, stale)
			}
			return err
		})
	}
}

// refuseToStartWithoutKeys starts the server without its key file, which it must not replace.
func (s *testCluster) refuseToStartWithoutKeys(t *testing.T, folder string) {
	t.Helper()
	file := encryption.Folder{Path: folder}.String()
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	err := s.StartServer(ctx)
	if err == nil || !strings.Contains(err.Error(), file+" is missing") {
		t.Errorf("start without keys: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a new key file was created")
	}
	if err := os.Rename(file+".moved", file); err != nil {
		t.Fatal(err)
	}
}

// TestPlainRows checks that unencrypted rows are found, and that they are encrypted once a key is configured.
func TestPlainRows(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.yaml")
	write(t, file, "{identity: {}}")
	s := newTestCluster(t, devcluster.Options{ServerArgs: []string{
		"--encryption-provider-config=" + file, "--encryption-provider-config-automatic-reload",
	}})
	s.mirrorASecret(t)
	folder := s.Env(devcluster.EnvDataDir)
	if found := leakingFiles(t, folder); !slices.Contains(found, "api.db") || !slices.Contains(found, "work.db") {
		t.Fatalf("files with the marker: %q, want both stores", found)
	}
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))
	write(t, file, "{aesgcm: {keys: [{name: mine, secret: "+secret+"}]}}, {identity: {}}")
	s.waitForRewrite(t, "objects", "work")
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	allEncryptedBy(t, boltRows(t, filepath.Join(folder, "api.db")), "aesgcm \"mine\"", repositories, records)
	allEncryptedBy(t, boltRows(t, filepath.Join(folder, "work.db")), "aesgcm \"mine\"", outbox)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.acceptPushes(t)
}

// write writes an encryption configuration with providers for all resources.
func write(t *testing.T, file, providers string) {
	t.Helper()
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n" +
		"resources: [{resources: ['*.configbutler.ai'], providers: [" + providers + "]}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
