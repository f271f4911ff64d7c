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

// testLease is the lease of the keys that promises write under one.
const testLease = 77

// promises are the acknowledgements of an engine. Writer w writes its i-th pair of keys in a transaction that also counts
// to i and removes the pair before the last ten.
type promises struct {
	mu sync.Mutex
	// done is the last acknowledged pair of each writer, refused those that certainly left nothing. revision is the last
	// acknowledged one.
	done     map[int]int
	refused  map[string]bool
	revision int64
}

func newPromises() *promises { return &promises{done: map[int]int{}, refused: map[string]bool{}} }

// clone returns a copy of the current promises.
func (p *promises) clone() *promises {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &promises{done: maps.Clone(p.done), refused: maps.Clone(p.refused), revision: p.revision}
}

func pairKey(w, i int, half string) string { return fmt.Sprintf("/pair/%d/%d/%s", w, i, half) }
func counterKey(w int) string              { return fmt.Sprintf("/count/%d", w) }

// write writes a writer's next pair.
func (p *promises) write(ctx context.Context, client *clientv3.Client, w int) error {
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
		p.refused[pairKey(w, i, "a")] = true
	}
	if err != nil {
		return err
	}
	delete(p.refused, pairKey(w, i, "a"))
	p.done[w] = i
	p.revision = max(p.revision, response.Header.Revision)
	return nil
}

// check fails unless an engine has everything promised, and is consistent.
func (p *promises) check(t *testing.T, e *bolt.Engine) {
	t.Helper()
	if e.Revision() < p.revision {
		t.Fatalf("revision %d was answered, the store is at %d", p.revision, e.Revision())
	}
	held := contents(t, e)
	for w, i := range p.done {
		p.checkWriter(t, held, w, i)
	}
	for key := range p.refused {
		if _, found := held[key]; found {
			t.Fatalf("%s was refused for want of space and is there", key)
		}
	}
	for key := range held {
		if half, other := strings.CutSuffix(key, "/a"); other {
			if _, found := held[half+"/b"]; !found {
				t.Fatalf("%s is there without its other half", key)
			}
		}
	}
	checkWhole(t, e)
	checkPages(t, e)
}

func (p *promises) checkWriter(t *testing.T, held map[string]string, w, done int) {
	t.Helper()
	var counted int
	if _, err := fmt.Sscan(held[counterKey(w)], &counted); err != nil && done > 0 || counted < done {
		t.Fatalf("writer %d was answered %d, its counter is %q", w, done, held[counterKey(w)])
	}
	for i := max(1, counted-9); i <= counted; i++ {
		if _, found := held[pairKey(w, i, "a")]; !found {
			t.Fatalf("pair %d of writer %d is gone, its counter is %d", i, w, counted)
		}
	}
	if _, found := held[pairKey(w, counted-10, "a")]; found {
		t.Fatalf("pair %d of writer %d is there, its counter is %d", counted-10, w, counted)
	}
}

func contents(t *testing.T, e *bolt.Engine) map[string]string {
	t.Helper()
	all, err := e.Range(t.Context(), &pb.RangeRequest{Key: []byte("/"), RangeEnd: []byte("0")})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	for _, kv := range all.Kvs {
		held[string(kv.Key)] = string(kv.Value)
	}
	return held
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
		t.Fatalf("structure of the file: %v", err)
	}
}

// openManual opens a store that only the test compacts.
func openManual(t *testing.T, path string, options bolt.Options) *bolt.Engine {
	t.Helper()
	options.CompactionInterval = -1
	e, err := bolt.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // Most tests have closed it, or have made it fail.
	return e
}

func grantTestLease(ctx context.Context, e *bolt.Engine) error {
	_, err := e.Grant(ctx, &pb.LeaseGrantRequest{ID: testLease, TTL: 3600})
	if errors.Is(err, rpctypes.ErrLeaseExist) {
		return nil
	}
	return err
}

// leasedStore returns a store for a test to continue with.
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
