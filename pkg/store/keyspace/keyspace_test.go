// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package keyspace_test

import (
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/keyspace"
)

// group is the API group in the keys of objects.
const group = "configbutler.ai"

// store returns a store with the given keys.
func store(t *testing.T, keys ...string) clientv3.KV {
	t.Helper()
	engine, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "store"), bolt.Options{CompactionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	client := bolt.NewClient(t.Context(), engine)
	for _, key := range keys {
		if _, err := client.KV.Put(t.Context(), key, "value"); err != nil {
			t.Fatal(err)
		}
	}
	return client.KV
}

func TestOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		objects, rows []string
		want          string
	}{
		"nothing is there":   {want: "/configured"},
		"what is configured": {objects: []string{"/a/configbutler.ai/x/n", "/configured/configbutler.ai/x/n"}, want: "/configured"},
		"rows of what is configured": {
			objects: []string{"/a/configbutler.ai/x/n"}, rows: []string{"/configured-work/x"}, want: "/configured",
		},
		"another":                        {objects: []string{"/a/b/configbutler.ai/x/configured/n"}, want: "/a/b"},
		"one with the name of the group": {objects: []string{"/a/configbutler.ai/b/configbutler.ai/x/n"}, want: "/a/configbutler.ai/b"},
		"rows only":                      {rows: []string{"/a-work/outbox/a-work/b"}, want: "/a"},
		"keys of another user":           {objects: []string{"/a/b"}, rows: []string{"c"}, want: "/configured"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := keyspace.OfFiles(t.Context(), group, store(t, test.objects...), store(t, test.rows...), "/configured")
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
