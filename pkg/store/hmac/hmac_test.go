// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package hmac_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/hmac"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// open makes a hasher on the configuration that is in the folder now.
func open(t *testing.T, kv clientv3.KV, home encryption.Folder) *hmac.Hasher {
	t.Helper()
	encrypter, err := encryption.Open(t.Context(), encryption.Config{Origin: home})
	if err != nil {
		t.Fatal(err)
	}
	hasher, err := hmac.Open(t.Context(), table.New(kv, "/registry-work", table.WithTransformer(encrypter.Work())))
	if err != nil {
		t.Fatal(err)
	}
	return hasher
}

func newHome(t *testing.T) encryption.Folder {
	t.Helper()
	home := encryption.Folder{Path: t.TempDir()}
	if err := encryption.Ensure(t.Context(), home, func(context.Context) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestSumsStayWithTheStore(t *testing.T) {
	kv, home := bolttest.NewKV(t), newHome(t)
	secret := []byte("hunter2")
	sum := open(t, kv, home).Sum("dependency", secret)
	if again := open(t, kv, home).Sum("dependency", secret); again != sum {
		t.Errorf("another process has %s, want %s", again, sum)
	}
	if _, err := encryption.Rotate(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	if after := open(t, kv, home).Sum("dependency", secret); after != sum {
		t.Errorf("after a rotation it is %s, want %s", after, sum)
	}
	if other := open(t, bolttest.NewKV(t), home).Sum("dependency", secret); other == sum {
		t.Error("another store has the same sum: it can be found by trying")
	}
	if plain := sha256.Sum256(secret); strings.Contains(sum, hex.EncodeToString(plain[:])) {
		t.Error("the sum is a plain hash")
	}
}

func TestKeyIsEncrypted(t *testing.T) {
	kv := bolttest.NewKV(t)
	open(t, kv, newHome(t))
	answer, err := kv.Get(t.Context(), "/registry-work/", clientv3.WithPrefix())
	if err != nil || len(answer.Kvs) != 1 || encryption.EncryptedBy(answer.Kvs[0].Value) == "" {
		t.Errorf("the store holds %v (%v), want one encrypted row", answer.Kvs, err)
	}
}

func TestSumsTellApart(t *testing.T) {
	hasher := open(t, bolttest.NewKV(t), newHome(t))
	seen := map[string]string{}
	for what, sum := range map[string]string{
		"one part":         hasher.Sum("p", []byte("ab")),
		"two parts":        hasher.Sum("p", []byte("a"), []byte("b")),
		"an empty part":    hasher.Sum("p", []byte("ab"), nil),
		"no part":          hasher.Sum("p"),
		"another purpose":  hasher.Sum("pa", []byte("b")),
		"purpose and part": hasher.Sum("pab"),
	} {
		if other, met := seen[sum]; met || len(sum) != 64 {
			t.Errorf("%s has the sum %s, as has %q", what, sum, other)
		}
		seen[sum] = what
	}
}
