// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/bolt"
)

// testLease is the lease that some of the keys of acknowledgedWrites are attached to.
const testLease = 77

// acknowledgedWrites records the writes that an engine has acknowledged. Writer w writes its i-th pair of keys in a
// transaction that also sets its counter to i and deletes the pairs before the last ten.
type acknowledgedWrites struct {
	mu sync.Mutex
	// done is the last acknowledged pair of each writer. rejected are keys whose write failed before it was committed.
	// revision is the last acknowledged revision.
	done     map[int]int
	rejected map[string]bool
	revision int64
}

func newAcknowledgedWrites() *acknowledgedWrites {
	return &acknowledgedWrites{done: map[int]int{}, rejected: map[string]bool{}}
}

// clone returns a copy of the current state.
func (p *acknowledgedWrites) clone() *acknowledgedWrites {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &acknowledgedWrites{done: maps.Clone(p.done), rejected: maps.Clone(p.rejected), revision: p.revision}
}

func pairKey(w, i int, half string) string { return fmt.Sprintf("/pair/%d/%d/%s", w, i, half) }
func counterKey(w int) string              { return fmt.Sprintf("/count/%d", w) }

// write writes the writer's next pair.
func (p *acknowledgedWrites) write(ctx context.Context, client *clientv3.Client, w int) error {
	p.mu.Lock()
	i := p.done[w] + 1
	p.mu.Unlock()
	value := strings.Repeat("x", 300)
	lease := clientv3.WithLease(0)
	if i%7 == 0 {
		lease = clientv3.WithLease(testLease)
	}
	response, err := client.Txn(ctx).Then(
		clientv3.OpPut(pairKey(w, i, "a"), value, lease), clientv3.OpPut(pairKey(w, i, "b"), value),
		clientv3.OpPut(counterKey(w), fmt.Sprint(i)),
		clientv3.OpDelete(fmt.Sprintf("/pair/%d/%d/", w, i-10), clientv3.WithPrefix()),
	).Commit()
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, bolt.ErrDiskFull) {
		p.rejected[pairKey(w, i, "a")] = true
	}
	if err != nil {
		return err
	}
	delete(p.rejected, pairKey(w, i, "a"))
	p.done[w] = i
	p.revision = max(p.revision, response.Header.Revision)
	return nil
}

// check fails unless an engine has every acknowledged write and is consistent.
func (p *acknowledgedWrites) check(t *testing.T, e *bolt.Engine) {
	t.Helper()
	if e.Revision() < p.revision {
		t.Fatalf("revision %d was acknowledged, the store is at %d", p.revision, e.Revision())
	}
	stored := contents(t, e)
	for w, i := range p.done {
		p.checkWriter(t, stored, w, i)
	}
	for key := range p.rejected {
		if _, found := stored[key]; found {
			t.Fatalf("write of %s failed with a full disk, but the key exists", key)
		}
	}
	for key := range stored {
		if half, other := strings.CutSuffix(key, "/a"); other {
			if _, found := stored[half+"/b"]; !found {
				t.Fatalf("%s exists without its other half", key)
			}
		}
	}
	checkWhole(t, e)
	checkPages(t, e)
}

func (p *acknowledgedWrites) checkWriter(t *testing.T, stored map[string]string, w, done int) {
	t.Helper()
	var counted int
	if _, err := fmt.Sscan(stored[counterKey(w)], &counted); err != nil && done > 0 || counted < done {
		t.Fatalf("writer %d: write %d was acknowledged, the counter is %q", w, done, stored[counterKey(w)])
	}
	for i := max(1, counted-9); i <= counted; i++ {
		if _, found := stored[pairKey(w, i, "a")]; !found {
			t.Fatalf("pair %d of writer %d is missing, the counter is %d", i, w, counted)
		}
	}
	if _, found := stored[pairKey(w, counted-10, "a")]; found {
		t.Fatalf("pair %d of writer %d was not deleted, the counter is %d", counted-10, w, counted)
	}
}

func contents(t *testing.T, e *bolt.Engine) map[string]string {
	t.Helper()
	all, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for _, kv := range all.Kvs {
		stored[string(kv.Key)] = string(kv.Value)
	}
	return stored
}

// checkPages fails if the file's pages are not a valid tree.
func checkPages(t *testing.T, e *bolt.Engine) {
	t.Helper()
	err := e.DB().View(func(tx *bbolt.Tx) error {
		var errs []error
		for err := range tx.Check() {
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatalf("check pages: %v", err)
	}
}

// openManual opens a store without periodic compaction.
func openManual(t *testing.T, path string, options bolt.Options) *bolt.Engine {
	t.Helper()
	options.CompactionInterval = -1
	e, err := bolt.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // Most tests close it or make it fail.
	return e
}

func grantTestLease(ctx context.Context, e *bolt.Engine) error {
	_, err := e.Grant(ctx, &pb.LeaseGrantRequest{ID: testLease, TTL: 3600})
	if errors.Is(err, rpctypes.ErrLeaseExist) {
		return nil
	}
	return err
}

// leasedStore returns the path of a closed store in which testLease is granted.
func leasedStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	e := openManual(t, path, bolt.Options{}.WithoutSync())
	if err := grantTestLease(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
	return path
}
