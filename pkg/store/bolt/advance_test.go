// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// TestAdvance checks that an advanced store hands out higher revisions only, and that watches from earlier revisions fail
// as compacted.
func TestAdvance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := reopen(t, path)
	set(t, e, "/a", "old")
	before := bolt.NewClient(t.Context(), e).Watch(t.Context(), "/", clientv3.WithPrefix())
	if err := e.Advance(t.Context(), 5000); err != nil {
		t.Fatal(err)
	}
	if e.Revision() != 5000 || e.CompactRevision() != 5000 {
		t.Fatalf("revision %d, compacted %d", e.Revision(), e.CompactRevision())
	}
	if response := <-before; response.CompactRevision != 5000 {
		t.Errorf("watch opened before Advance got %+v", response)
	}
	if got := read(t, e, "/", 0); got != "/a=old@2/2.1" {
		t.Errorf("keys = %s", got)
	}
	if err := e.Advance(t.Context(), 4999); err == nil || e.Revision() != 5000 {
		t.Errorf("advance to a lower revision: %v, revision %d", err, e.Revision())
	}
	if err := e.Advance(t.Context(), 5000); err != nil {
		t.Errorf("advance to the current revision: %v", err)
	}
	if got := set(t, e, "/b", "new"); got != 5001 {
		t.Errorf("the next write got revision %d", got)
	}
	closeEngine(t, e)
	e = reopen(t, path)
	defer closeEngine(t, e)
	client := bolt.NewClient(t.Context(), e)
	if response := <-client.Watch(t.Context(), "/", clientv3.WithPrefix(),
		clientv3.WithRev(5000)); !errors.Is(response.Err(), rpctypes.ErrCompacted) {
		t.Errorf("watch from a compacted revision got %v", response.Err())
	}
	response := <-client.Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithRev(5001))
	if len(response.Events) != 1 || string(response.Events[0].Kv.Key) != "/b" {
		t.Errorf("watch from the next revision got %v", response.Events)
	}
}
