// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// configurationOf returns a configuration of the user's own with the named keys.
func configurationOf(t *testing.T, keys ...string) string {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n" +
		"resources:\n- resources: ['*.configbutler.ai']\n  providers:\n"
	for _, key := range keys {
		// The secret is derived from the name, so that a name identifies one key.
		secret := bytes.Repeat([]byte(key), 32)[:32]
		text += "  - secretbox: {keys: [{name: " + key + ", secret: " + base64.StdEncoding.EncodeToString(secret) + "}]}\n"
	}
	return writeFile(t, filepath.Join(t.TempDir(), "own.yaml"), text)
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lastKey is a key in both stores, after the others that encryptedDirectory writes.
const lastKey = "z-last"

// encryptedDirectory creates a data directory with an object and a row that are encrypted with the first configuration, as
// a server does. The empty configuration is the server's own. For each further configuration it adds an object and a row
// that only that one decrypts.
func encryptedDirectory(t *testing.T, configurations ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	for i, configuration := range configurations {
		opts := optionsOn(path)
		opts.Storage.Etcd.EncryptionProviderConfigFilepath = configuration
		putEncrypted(t, opts, []string{"a-first", lastKey}[i])
	}
	return path
}

// putEncrypted writes an object and a row that are encrypted with the configuration of opts.
func putEncrypted(t *testing.T, opts *options.Options, name string) {
	t.Helper()
	s, err := openStores(t.Context(), opts.Storage)
	if err != nil {
		t.Fatal(err)
	}
	encrypter, err := openEncrypter(t.Context(), opts, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	repositories := schema.GroupResource{Group: configbutler.GroupName, Resource: "gitrepoconfigs"}
	for key, transformer := range map[string]value.Transformer{
		"/registry/configbutler.ai/gitrepoconfigs/team/" + name: encrypter.Transformers().TransformerForResource(repositories),
		"/registry-work/outbox/" + name:                         encrypter.Work(),
	} {
		encrypted, err := transformer.TransformToStorage(t.Context(), []byte("hunter2"), value.DefaultContext(key))
		if err != nil {
			t.Fatal(err)
		}
		engine := s.api
		if strings.HasPrefix(key, "/registry-work") {
			engine = s.work
		}
		if _, err := engine.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: encrypted}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreChecksTheKey restores a backup that the present key decrypts, and refuses any other before anything changes.
func TestRestoreChecksTheKey(t *testing.T) {
	const own = "" // The server's own configuration.
	mine, other, both := configurationOf(t, "mine"), configurationOf(t, "other"), configurationOf(t, "mine", "other")
	kept := filepath.Join(encryptedDirectory(t, own), encryption.FileName) // A copy of the server's own, in another place.
	tests := []struct {
		name string
		// saved and present are the configurations of what is backed up, and of what the directory holds; present is empty for no directory.
		saved, present []string
		withKey        bool
		// configuration is the configuration of the restored server.
		configuration string
		arguments     []string
		// refused are parts of the error; none if the backup is restored.
		refused []string
	}{
		{name: "another key", saved: []string{own}, present: []string{own}, refused: []string{
			"nothing was changed", "/registry/configbutler.ai/gitrepoconfigs/team/a-first", `secretbox "1-`, "encryption.yaml as a further provider",
		}},
		{name: "no key", saved: []string{own}, refused: []string{"encryption.yaml is missing", `secretbox "1-`, "--encryption-provider-config"}},
		{name: "the key in the backup, over another one", saved: []string{own}, present: []string{own}, withKey: true},
		{name: "the key in the backup, into nothing", saved: []string{own}, withKey: true},
		{name: "a configuration of the user's", saved: []string{mine}, present: []string{mine}, configuration: mine},
		{name: "the server's own, kept apart", saved: []string{kept}, present: []string{own}, configuration: kept},
		{name: "a configuration of the user's that has more", saved: []string{mine}, present: []string{other}, configuration: both},
		{
			name: "a configuration of the user's without the key", saved: []string{mine}, present: []string{other}, configuration: other,
			refused: []string{`secretbox "mine"`, "add the missing key to " + other},
		},
		{
			name: "a configuration of the user's that is not named", saved: []string{mine},
			refused: []string{"encryption.yaml is missing", `secretbox "mine"`},
		},
		{
			name: "a configuration of the user's that does not exist", saved: []string{mine},
			configuration: "/nowhere.yaml", refused: []string{"/nowhere.yaml"},
		},
		{name: "one row with a missing key", saved: []string{mine, other}, configuration: mine, refused: []string{lastKey, `secretbox "other"`}},
		{
			name: "one row with a key that is lost", saved: []string{mine, other}, configuration: mine,
			arguments: []string{"--allow-unreadable"},
		},
		{
			name: "all with another key, although unreadable rows are allowed", saved: []string{mine}, present: []string{own},
			arguments: []string{"--allow-unreadable"}, refused: []string{`secretbox "mine"`},
		},
	}
	for _, tt := range tests {
		saved := filepath.Join(t.TempDir(), "backup.tar")
		arguments := []string{"backup", "--data-dir=" + encryptedDirectory(t, tt.saved...), "-o", saved}
		if tt.withKey {
			arguments = append(arguments, "--with-encryption-key")
		}
		if code, _, said := execute(t, "", arguments...); code != 0 {
			t.Fatalf("%s: %s", tt.name, said)
		}
		for _, running := range []bool{false, true} {
			t.Run(tt.name+map[bool]string{false: ", stopped", true: ", running"}[running], func(t *testing.T) {
				path := encryptedDirectory(t, tt.present...)
				opts := optionsOn(path)
				opts.Storage.Etcd.EncryptionProviderConfigFilepath = tt.configuration
				t.Run("restore", func(t *testing.T) {
					arguments := append([]string{"restore", "--data-dir=" + path, saved}, tt.arguments...)
					if running {
						servingWith(t, opts)
					} else if tt.configuration != "" {
						arguments = append(arguments, "--encryption-provider-config="+tt.configuration)
					}
					expectRestore(t, path, arguments, tt.refused)
				})
				if len(tt.refused) == 0 {
					starts(t, opts)
				}
			})
		}
	}
}

// expectRestore runs a restore. A refused one returns the reason and changes nothing.
func expectRestore(t *testing.T, path string, arguments, refused []string) {
	t.Helper()
	before := filesOf(t, path)
	code, _, said := execute(t, "", arguments...)
	if len(refused) == 0 {
		if code != 0 {
			t.Errorf("exit code %d: %s", code, said)
		}
		return
	}
	if code != exitFailed {
		t.Errorf("exit code %d, want %d: %s", code, exitFailed, said)
	}
	for _, want := range refused {
		if !strings.Contains(said, want) {
			t.Errorf("the error lacks %q: %s", want, said)
		}
	}
	if after := filesOf(t, path); !maps.EqualFunc(before, after, bytes.Equal) {
		t.Errorf("the directory was changed: %v, was %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}

// filesOf returns the content of the files of a directory, without the lock.
func filesOf(t *testing.T, path string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() == "lock" {
			continue
		}
		files[entry.Name()] = nil
		if entry.Type().IsRegular() {
			if files[entry.Name()], err = os.ReadFile(filepath.Join(path, entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

// starts fails unless a server starts on the restored data.
func starts(t *testing.T, opts *options.Options) {
	t.Helper()
	s, err := openStores(t.Context(), opts.Storage)
	if err != nil {
		t.Fatal(err)
	}
	stored := s.encrypted(t.Context(), opts.Storage.Etcd.StorageConfig.Prefix)
	if found, err := encryption.Find(t.Context(), stored...); found == "" || err != nil {
		t.Errorf("nothing is encrypted (%v)", err)
	}
	if _, err := openEncrypter(t.Context(), opts, stored, ""); err != nil {
		t.Error(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}
