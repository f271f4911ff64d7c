// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3/testserver"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

// reloadInterval is short to keep the tests fast.
const reloadInterval = 5 * time.Millisecond

// repositories is an example of a resource.
var repositories = schema.GroupResource{Group: "configbutler.ai", Resource: "gitrepoconfigs"}

func open(t testing.TB, origin encryption.Origin) *encryption.Encrypter {
	t.Helper()
	encrypter, err := encryption.Open(t.Context(), encryption.Config{Origin: origin, Reload: true, ReloadInterval: reloadInterval})
	if err != nil {
		t.Fatal(err)
	}
	return encrypter
}

// provider returns the YAML of a provider with a key of 32 bytes.
func provider(kind, key string, fill byte) string {
	secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))
	return fmt.Sprintf("{%s: {keys: [{name: %s, secret: %s}]}}", kind, key, secret)
}

// configuration returns the YAML of a configuration for some resources.
func configuration(resources string, providers ...string) string {
	return fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [%s], "+
		"providers: [%s]}]\n",
		resources, strings.Join(providers, ", "))
}

const everything = "'*.configbutler.ai'"

// newFile creates a configuration of the user.
func newFile(t testing.TB, content string) encryption.File {
	t.Helper()
	file := encryption.File{Path: filepath.Join(t.TempDir(), "mine.yaml")}
	if err := os.WriteFile(file.Path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestProviders(t *testing.T) {
	made := newFolder(t)
	ensure(t, made)
	shared := newSecret()
	ensure(t, shared)
	origins := map[string]encryption.Origin{
		"secretbox in the folder": made, "secretbox in the Secret": shared,
		"aesgcm":    newFile(t, configuration(everything, provider("aesgcm", "k", 1))),
		"aescbc":    newFile(t, configuration("'*.*'", provider("aescbc", "k", 1))),
		"secretbox": newFile(t, configuration(everything, provider("secretbox", "k", 1))),
	}
	for name, origin := range origins {
		t.Run(name, func(t *testing.T) {
			encrypter := open(t, origin)
			for what, transformer := range map[string]value.Transformer{
				"object": encrypter.Transformers().TransformerForResource(repositories), "row": encrypter.Work(),
			} {
				plain, context := []byte("hunter2"), value.DefaultContext("/key")
				encrypted, err := transformer.TransformToStorage(t.Context(), plain, context)
				if err != nil || bytes.Contains(encrypted, plain) || !bytes.HasPrefix(encrypted, []byte("k8s:enc:")) {
					t.Fatalf("%s is stored as %q (%v)", what, encrypted, err)
				}
				decrypted, stale, err := transformer.TransformFromStorage(t.Context(), encrypted, context)
				if err != nil || stale || string(decrypted) != "hunter2" {
					t.Errorf("%s is decrypted as %q, stale %v (%v)", what, decrypted, stale, err)
				}
			}
		})
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"rows of the work store forgotten": {configuration("gitrepoconfigs.configbutler.ai", provider("aesgcm", "k", 1)), "work.configbutler.ai"},
		"no key":                           {configuration(everything, "{aesgcm: {keys: []}}"), "keys"},
		"an unknown provider":              {configuration(everything, "{rot13: {}}"), "rot13"},
		"empty":                            {"", "is empty"},
		"a key that is too short": {
			configuration(everything, "{secretbox: {keys: [{name: k, secret: c2hvcnQ=}]}}"), "expected one of [32]",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file := newFile(t, test.content)
			_, err := encryption.Open(t.Context(), encryption.Config{Origin: file})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file.Path) {
				t.Errorf("error %v, want %q and the file in it", err, test.want)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		if _, err := encryption.Open(t.Context(),
			encryption.Config{Origin: encryption.File{Path: "/nowhere"}}); !errors.Is(err, encryption.ErrAbsent) {
			t.Errorf("error %v, want %v", err, encryption.ErrAbsent)
		}
	})
	t.Run("plain on purpose", func(t *testing.T) {
		open(t, newFile(t, configuration("work.configbutler.ai", "{identity: {}}")))
	})
}

// encryptedBy waits until the encrypter encrypts with the key of a name.
func encryptedBy(t *testing.T, encrypter *encryption.Encrypter, name string) {
	t.Helper()
	testkit.Eventually(t, "the key "+name, func() error {
		encrypted, err := encrypter.Work().TransformToStorage(t.Context(), []byte("x"), value.DefaultContext("/key"))
		if err == nil && !strings.Contains(encryption.EncryptedBy(encrypted), name) {
			err = fmt.Errorf("encrypted with %s", encryption.EncryptedBy(encrypted))
		}
		return err
	})
}

func TestChangesComeIntoForce(t *testing.T) {
	t.Run("of a folder", func(t *testing.T) {
		home := newFolder(t)
		ensure(t, home)
		encrypter := open(t, home)
		encryptedBy(t, encrypter, rotate(t, home))
	})
	t.Run("of the user's file", func(t *testing.T) {
		file := newFile(t, configuration(everything, provider("aesgcm", "first", 1)))
		encrypter := open(t, file)
		for name, broken := range map[string]string{
			"no YAML": "{", "empty": "", "without the work store": configuration("gitrepoconfigs.configbutler.ai", provider("aesgcm", "second", 1)),
		} {
			write(t, file.Path, broken)
			if err := encrypter.Reload(t.Context()); err == nil {
				t.Errorf("%s was taken", name)
			}
			encryptedBy(t, encrypter, "first")
		}
		write(t, file.Path, configuration(everything, provider("aescbc", "third", 1)))
		encryptedBy(t, encrypter, "third")
	})
}

func TestRemovedConfigurationIsPutBack(t *testing.T) {
	home := newFolder(t)
	ensure(t, home)
	before := keys(t, home)
	open(t, home)
	if err := os.Remove(home.String()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the file", func() error {
		_, err := os.Stat(home.String())
		return err
	})
	if after := keys(t, home); after[0] != before[0] {
		t.Errorf("keys %q, want %q", after, before)
	}
}

// onBoth runs a test with bbolt and with etcd.
func onBoth(t *testing.T, test func(*testing.T, clientv3.KV)) {
	t.Helper()
	t.Run("bbolt", func(t *testing.T) { test(t, bolttest.NewKV(t)) })
	t.Run("etcd", func(t *testing.T) {
		client := testserver.RunEtcd(t, nil)
		t.Cleanup(func() {
			if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		test(t, client.KV)
	})
}

func TestStoreOfAnotherKey(t *testing.T) {
	onBoth(t, func(t *testing.T, kv clientv3.KV) {
		mine, other := newFolder(t), newFolder(t)
		ensure(t, mine)
		ensure(t, other)
		stored := []encryption.Rows{encryption.Objects(kv, "registry"), encryption.Work(kv, "/registry-work")}
		find := func() string {
			found, err := encryption.Find(t.Context(), stored...)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		putRaw(t, kv, "/registry/configbutler.ai/gitrepoconfigs/ns/a", []byte("{}"))
		putRaw(t, kv, "/registry/other.io/things/a", []byte("k8s:enc:secretbox:v1:theirs:x"))
		if found := find(); found != "" {
			t.Errorf("found %s", found)
		}
		putEncrypted(t, kv, open(t, mine), encryption.WorkResource, "/registry-work/outbox/a", "hunter2")
		if found := find(); !strings.Contains(found, "/registry-work/outbox/a") || !strings.Contains(found, keys(t, mine)[0]) {
			t.Errorf("found %q", found)
		}
		if err := open(t, mine).Check(t.Context(), stored...); err != nil {
			t.Error(err)
		}
		err := open(t, other).Check(t.Context(), stored...)
		for _, want := range []string{"/registry-work/outbox/a", keys(t, mine)[0], other.String()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		}
	})
}

func putRaw(t *testing.T, kv clientv3.KV, key string, stored []byte, opts ...clientv3.OpOption) {
	t.Helper()
	if _, err := kv.Put(t.Context(), key, string(stored), opts...); err != nil {
		t.Fatal(err)
	}
}

func putEncrypted(t *testing.T, kv clientv3.KV, encrypter *encryption.Encrypter, resource schema.GroupResource, key, plain string) {
	t.Helper()
	encrypted, err := encrypter.Transformers().TransformerForResource(resource).TransformToStorage(t.Context(), []byte(plain),
		value.DefaultContext(key))
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, kv, key, encrypted)
}

func TestEncryptedBy(t *testing.T) {
	for stored, want := range map[string]string{
		"k8s:enc:secretbox:v1:1-abc:\x00\xff": `secretbox "1-abc"`,
		"k8s:enc:aescbc:v1:key1::":            `aescbc "key1"`,
		"k8s:enc:kms:v2:vault:x":              `kms "vault"`,
		"k8s:enc:secretbox:v1:":               "",
		"{}":                                  "",
		"":                                    "",
		"k8s:enc:kms:v2:" + strings.Repeat("x", 300) + ":": "",
	} {
		if got := encryption.EncryptedBy([]byte(stored)); got != want {
			t.Errorf("%q: got key %s, want %s", stored, got, want)
		}
	}
}

// TestRowThatCannotBeOpenedIsNamed reads through the work store, as the mirror does with its outbox.
func TestRowThatCannotBeOpenedIsNamed(t *testing.T) {
	kv, home := bolttest.NewKV(t), newFolder(t)
	ensure(t, home)
	putEncrypted(t, kv, open(t, home), encryption.WorkResource, "/registry-work/outbox/uid/0001", "hunter2")
	other := newFolder(t)
	ensure(t, other)
	table := storetable.New(kv, "/registry-work", storetable.WithTransformer(open(t, other).Work())).Table("outbox")
	var failure error
	for _, err := range table.Scan(t.Context(), "") {
		failure = err
	}
	for _, want := range []string{"/registry-work/outbox/uid/0001", keys(t, home)[0], "operations.md"} {
		if failure == nil || !strings.Contains(failure.Error(), want) {
			t.Errorf("error %v, want %q in it", failure, want)
		}
	}
	if strings.Contains(fmt.Sprint(failure), "hunter2") {
		t.Errorf("the error contains the content of the row: %v", failure)
	}
}

// TestDamagedFormIsNotPlain flips each bit of the prefix of an encrypted value. The provider identity, which reads values
// stored before encryption was enabled, must not return such a value.
func TestDamagedFormIsNotPlain(t *testing.T) {
	kv, home := bolttest.NewKV(t), newFolder(t)
	ensure(t, home)
	encrypter := open(t, home)
	const key = "/registry-work/outbox/uid/0001"
	putEncrypted(t, kv, encrypter, encryption.WorkResource, key, "hunter2")
	rows := encryption.Work(kv, "/registry-work")
	encrypted, err := rows.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	table := storetable.New(kv, "/registry-work", storetable.WithTransformer(encrypter.Work())).Table("outbox")
	for bit := range 8 * (len("k8s:enc:secretbox:v1:") + 4) {
		damaged := bytes.Clone(encrypted.Value)
		damaged[bit/8] ^= 1 << (bit % 8)
		putRaw(t, kv, key, damaged)
		for row, err := range table.Scan(t.Context(), "") {
			if err == nil {
				t.Errorf("bit %d is flipped: the row is read as %q", bit, row.Value)
			}
		}
		if err := encrypter.Each(t.Context(), rows, func(_ *mvccpb.KeyValue, plain []byte, err error) error {
			if err == nil || !strings.Contains(err.Error(), "operations.md") {
				t.Errorf("bit %d is flipped: %v, decrypted as %q", bit, err, plain)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
