// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"path/filepath"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// TestCompactionOfWholeHistory compacts the whole history, which is less than a segment of the log, and continues writing.
func TestCompactionOfWholeHistory(t *testing.T) {
	const size = 100 << 10
	path := filepath.Join(t.TempDir(), "store.db")
	e := reopen(t, path)
	for range 100 {
		set(t, e, "/a", strings.Repeat("x", size))
		unset(t, e, "/a")
	}
	set(t, e, "/b", "kept")
	compacted := e.Revision()
	if _, err := e.Compact(t.Context(), &pb.CompactionRequest{Revision: compacted}); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)

	e = reopen(t, path)
	if used := sizeInUse(t, e); used > size {
		t.Errorf("%d bytes in use", used)
	}
	set(t, e, "/b", "changed")
	if got := read(t, e, "/", compacted); got != "/b=kept@202/202.1" {
		t.Errorf("keys at the compacted revision: %s", got)
	}
	watched := bolt.NewClient(t.Context(), e).Watch(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithRev(compacted+1))
	if response := <-watched; response.Err() != nil || len(response.Events) != 1 || string(response.Events[0].Kv.Value) != "changed" {
		t.Errorf("watch after the compacted revision got %+v", response)
	}
	closeEngine(t, e)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("Verify found %q", found)
	}
}

// TestCompactionDuringWrites compacts the segment of the log that is being written to.
func TestCompactionDuringWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	e := reopen(t, path)
	client := bolt.NewClient(t.Context(), e)
	group, ctx := errgroup.WithContext(t.Context())
	for _, key := range []string{"/a", "/b", "/c", "/d"} {
		group.Go(func() error {
			for range 500 {
				if _, err := client.Put(ctx, key, key); err != nil {
					return err
				}
				if key != "/a" {
					continue
				}
				if _, err := e.Compact(ctx, &pb.CompactionRequest{Revision: e.Revision()}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	if found := verify(t, path); len(found) > 0 {
		t.Errorf("Verify found %q", found)
	}
}

func sizeInUse(t *testing.T, e *bolt.Engine) int64 {
	t.Helper()
	status, err := bolt.NewClient(t.Context(), e).Status(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return status.DbSizeInUse
}
