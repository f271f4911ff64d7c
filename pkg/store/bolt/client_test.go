// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"k8s.io/apiserver/pkg/storage"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

func TestUnsupportedMethods(t *testing.T) {
	c := bolt.NewClient(t.Context(), openEngine(t, bolt.Options{})).Client
	ctx := t.Context()
	tests := map[string]func() error{
		"members":          func() error { _, err := c.MemberList(ctx); return err },
		"sync":             func() error { return c.Sync(ctx) },
		"users":            func() error { _, err := c.UserList(ctx); return err },
		"alarms":           func() error { _, err := c.AlarmList(ctx); return err },
		"defragment":       func() error { _, err := c.Defragment(ctx, ""); return err },
		"hash":             func() error { _, err := c.HashKV(ctx, "", 0); return err },
		"move leader":      func() error { _, err := c.MoveLeader(ctx, 1); return err },
		"snapshot version": func() error { _, err := c.SnapshotWithVersion(ctx); return err },
		"nested transaction": func() error {
			_, err := c.Txn(ctx).Then(clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("/a", "")}, nil)).Commit()
			return err
		},
		"sorted stream": func() error {
			stream, err := c.GetStream(ctx, "/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
			if err != nil {
				return err
			}
			response := <-stream
			return response.Err()
		},
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			if err := call(); status.Code(err) != codes.Unimplemented {
				t.Errorf("got %v, want an error with code %v", err, codes.Unimplemented)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	got, err := bolt.NewClient(t.Context(), e).Status(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if got.Header.ClusterId != e.Identity() || got.DbSize <= 0 || got.DbSizeInUse <= 0 || got.DbSizeInUse > got.DbSize {
		t.Errorf("status %+v", got)
	}
}

func TestFeatureSupport(t *testing.T) {
	bolt.NewClient(t.Context(), openEngine(t, bolt.Options{}))
	for _, feature := range []storage.Feature{storage.RequestWatchProgress, storage.RangeStream} {
		if !etcdfeature.DefaultFeatureSupportChecker.Supports(feature) {
			t.Errorf("feature %s is not reported as supported", feature)
		}
	}
}

// TestConvenienceMethods tests the methods that etcd's client builds on requests.
func TestConvenienceMethods(t *testing.T) {
	c := bolt.NewClient(t.Context(), openEngine(t, bolt.Options{})).Client
	ctx := t.Context()
	if _, err := c.Put(ctx, "/a", "1"); err != nil {
		t.Fatal(err)
	}
	put, err := c.Put(ctx, "/a", "2", clientv3.WithPrevKV())
	if err != nil || string(put.PrevKv.GetValue()) != "1" || put.Header.Revision != 3 {
		t.Errorf("put: %v, %v", put, err)
	}
	deleted, err := c.Delete(ctx, "/", clientv3.WithPrefix(), clientv3.WithPrevKV())
	if err != nil || deleted.Deleted != 1 || string(deleted.PrevKvs[0].Value) != "2" || deleted.Header.Revision != 4 {
		t.Errorf("delete: %v, %v", deleted, err)
	}
	compacted, err := c.Compact(ctx, 4, clientv3.WithCompactPhysical())
	if err != nil || compacted.Header.Revision != 4 {
		t.Errorf("compact: %v, %v", compacted, err)
	}
	done, err := c.Do(ctx, clientv3.OpGet("/a"))
	if err != nil || done.Get().Count != 0 {
		t.Errorf("get: %v, %v", done, err)
	}
}
