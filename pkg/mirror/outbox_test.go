// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	storeencryption "github.com/configbutler/slipstream/pkg/store/encryption"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// encryptedStore returns a store that encrypts its rows with a key.
func encryptedStore(t *testing.T, kv clientv3.KV, key string) *storetable.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	secret := bytes.Repeat([]byte(key), 16)[:16]
	err := os.WriteFile(path, fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"+
		"resources: [{resources: ['*.configbutler.ai'], providers: [{aesgcm: {keys: [{name: %s, secret: '%s'}]}}]}]\n", key,
		base64.StdEncoding.EncodeToString(secret)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	encrypter, err := storeencryption.Open(t.Context(), storeencryption.Config{Origin: storeencryption.File{Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	return storetable.New(kv, "/registry-work", storetable.WithTransformer(encrypter.Work()))
}

// TestRowThatCannotBeReadStopsTheStart starts with a row of an earlier process that cannot be read. The error must name the row and a
// remedy, and the row must remain.
func TestRowThatCannotBeReadStopsTheStart(t *testing.T) {
	const remedy = "operations.md"
	good := storetable.Row{Key: "shop/0000000000000001", Value: []byte("{}\n")}
	tests := []struct {
		name, table string
		row         storetable.Row
		// key encrypts the row; the process has the key "ours".
		key  string
		want []string
	}{
		{
			name: "under another key", table: "outbox", row: good, key: "theirs",
			want: []string{"/registry-work/outbox/" + good.Key, `aesgcm "theirs"`, remedy},
		},
		{name: "no JSON", table: "outbox", row: storetable.Row{Key: good.Key, Value: []byte("text")}, key: "ours", want: []string{
			"/registry-work/outbox/" + good.Key, "invalid character", "run the version that wrote it", remedy,
		}},
		{name: "no sequence", table: "outbox", row: storetable.Row{Key: "shop/x", Value: good.Value}, key: "ours", want: []string{
			"/registry-work/outbox/shop/x", "sequence", remedy,
		}},
		{name: "a note of a push", table: "pushes", row: storetable.Row{Key: "shop/main/main/url", Value: []byte("{")}, key: "ours",
			want: []string{
				"/registry-work/pushes/shop/main/main/url", "notes of pushes", remedy,
			}},
		{name: "a note of a push under another key", table: "pushes", row: storetable.Row{Key: "shop/main/main/url", Value: []byte("{}")},
			key: "theirs", want: []string{
				"/registry-work/pushes/shop/main/main/url", `aesgcm "theirs"`, remedy,
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kv := bolttest.NewKV(t)
			if err := encryptedStore(t, kv, tt.key).Table(tt.table).Put(t.Context(), tt.row); err != nil {
				t.Fatal(err)
			}
			store := encryptedStore(t, kv, "ours")
			m := &mirror{shared: sharing(store), router: &router{}, registry: newRegistry(nil, nil, nil), services: &branchServices{
				pushes: &pushLog{table: store.Table("pushes")},
			}}
			err := m.recover(t.Context())
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error = %v, want %q in it", err, want)
				}
			}
			if n, err := store.Table(tt.table).Count(t.Context(), ""); n != 1 || err != nil {
				t.Errorf("%d rows (%v), want one", n, err)
			}
		})
	}
}
