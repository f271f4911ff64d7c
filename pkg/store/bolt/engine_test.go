// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// reopen opens a file without syncs.
func reopen(t testing.TB, path string) *bolt.Engine {
	t.Helper()
	e, err := bolt.Open(t.Context(), path, bolt.Options{}.WithoutSync())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func closeEngine(t testing.TB, e *bolt.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// set puts a key and returns its revision.
func set(t testing.TB, e *bolt.Engine, key, value string) int64 {
	t.Helper()
	response, err := e.Put(t.Context(), &pb.PutRequest{Key: []byte(key), Value: []byte(value)})
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// unset deletes a key and returns the revision of the delete.
func unset(t testing.TB, e *bolt.Engine, key string) int64 {
	t.Helper()
	response, err := e.DeleteRange(t.Context(), &pb.DeleteRangeRequest{Key: []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

// read formats the keys of a prefix at a revision as key=value@created/modified.version.
func read(t testing.TB, e *bolt.Engine, prefix string, revision int64) string {
	t.Helper()
	response, err := e.Range(t.Context(), &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), Revision: revision,
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, kv := range response.Kvs {
		found = append(found, fmt.Sprintf("%s=%s@%d/%d.%d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version))
	}
	return strings.Join(found, " ")
}

func TestRevisions(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	steps := []struct {
		name string
		step func() int64
		want int64
	}{
		{"an empty store", e.Revision, 1},
		{"a create", func() int64 { return set(t, e, "/a", "1") }, 2},
		{"an update that changes nothing", func() int64 { return set(t, e, "/a", "1") }, 3},
		{"a delete of nothing", func() int64 { return unset(t, e, "/none") }, 3},
		{"a delete", func() int64 { return unset(t, e, "/a") }, 4},
		{"a create anew", func() int64 { return set(t, e, "/a", "2") }, 5},
		{"a comparison that fails", func() int64 { return compareAndSet(t, e, "/a", 4) }, 5},
		{"a comparison that holds", func() int64 { return compareAndSet(t, e, "/a", 5) }, 6},
		{"a transaction of two puts", func() int64 { return setBoth(t, e, "/a", "/b") }, 7},
	}
	for _, s := range steps {
		if got := s.step(); got != s.want {
			t.Fatalf("revision after %s is %d, want %d", s.name, got, s.want)
		}
	}
	if got, want := read(t, e, "/", 0), "/a=x@5/7.3 /b=x@7/7.1"; got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
}

func compareAndSet(t *testing.T, e *bolt.Engine, key string, revision int64) int64 {
	t.Helper()
	return runTxn(t, e, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", revision)}, clientv3.OpPut(key, "x"))
}

func setBoth(t *testing.T, e *bolt.Engine, a, b string) int64 {
	t.Helper()
	return runTxn(t, e, nil, clientv3.OpPut(a, "x"), clientv3.OpPut(b, "x"))
}

func runTxn(t *testing.T, e *bolt.Engine, compares []clientv3.Cmp, ops ...clientv3.Op) int64 {
	t.Helper()
	response, err := bolt.NewClient(t.Context(), e).Txn(t.Context()).If(compares...).Then(ops...).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}

func TestConflictReturnsCurrentKey(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	revision := set(t, e, "/a", "1")
	client := bolt.NewClient(t.Context(), e)
	response, err := client.Txn(t.Context()).
		If(clientv3.Compare(clientv3.ModRevision("/a"), "=", 0)).
		Then(clientv3.OpPut("/a", "2")).
		Else(clientv3.OpGet("/a")).Commit()
	if err != nil || response.Succeeded {
		t.Fatalf("create of a key that exists: %v, %v", response, err)
	}
	got := response.Responses[0].GetResponseRange().Kvs
	if len(got) != 1 || string(got[0].Value) != "1" || got[0].ModRevision != revision {
		t.Errorf("response %v, want the current key", got)
	}
}

func TestConcurrentCompareAndSet(t *testing.T) {
	const writers, each = 8, 25
	e := openEngine(t, bolt.Options{})
	set(t, e, "/counter", "0")
	client := bolt.NewClient(t.Context(), e)
	group, ctx := errgroup.WithContext(t.Context())
	for range writers {
		group.Go(func() error {
			for range each {
				if err := increment(ctx, client.Client, "/counter"); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	const n = writers * each
	if got, want := read(t, e, "/counter", 0), fmt.Sprintf("/counter=%d@2/%d.%d", n, 2+n, 1+n); got != want {
		t.Errorf("counter %s, want %s", got, want)
	}
}

// increment adds one to a number, retrying on conflicts.
func increment(ctx context.Context, client *clientv3.Client, key string) error {
	for {
		current, err := client.Get(ctx, key)
		if err != nil {
			return err
		}
		var n int
		if _, err := fmt.Sscan(string(current.Kvs[0].Value), &n); err != nil {
			return err
		}
		response, err := client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", current.Kvs[0].ModRevision)).
			Then(clientv3.OpPut(key, fmt.Sprint(n+1))).Commit()
		if err != nil || response.Succeeded {
			return err
		}
	}
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "store.db")
	e := reopen(t, path)
	set(t, e, "/a", "1")
	set(t, e, "/a", "2")
	unset(t, e, "/a")
	set(t, e, "/b", "1")
	identity := e.Identity()
	closeEngine(t, e)

	e = reopen(t, path)
	defer closeEngine(t, e)
	if e.Revision() != 5 || e.Identity() != identity {
		t.Errorf("revision %d and identity %x, want 5 and %x", e.Revision(), e.Identity(), identity)
	}
	for revision, want := range map[int64]string{0: "/b=1@5/5.1", 4: "", 3: "/a=2@2/3.2", 2: "/a=1@2/2.1", 1: ""} {
		if got := read(t, e, "/", revision); got != want {
			t.Errorf("keys at %d: %q, want %q", revision, got, want)
		}
	}
	if got := set(t, e, "/c", ""); got != 6 {
		t.Errorf("revision %d, want 6", got)
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	_, err := bolt.Open(t.Context(), e.Path(), bolt.Options{LockTimeout: 10 * time.Millisecond})
	if !errors.Is(err, bolt.ErrLocked) || !strings.Contains(err.Error(), e.Path()) {
		t.Errorf("second open: %v", err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	closeEngine(t, reopen(t, path))
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte{0, 0, 0, 0, 0, 0, 0, 4})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(t.Context(), path, bolt.Options{}); err == nil || !strings.Contains(err.Error(), "format 4") {
		t.Errorf("open of format 4: %v", err)
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a store ", 4096)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(t.Context(), path, bolt.Options{}); err == nil {
		t.Error("a file that is not a store was opened")
	}
}

func TestAfterClose(t *testing.T) {
	e := reopen(t, filepath.Join(t.TempDir(), "store.db"))
	set(t, e, "/a", "1")
	watch := bolt.NewClient(t.Context(), e).Watch(t.Context(), "/a")
	closeEngine(t, e)
	closeEngine(t, e)

	ctx, key := t.Context(), []byte("/a")
	_, rangeErr := e.Range(ctx, &pb.RangeRequest{Key: key})
	_, putErr := e.Put(ctx, &pb.PutRequest{Key: key})
	_, compactErr := e.Compact(ctx, &pb.CompactionRequest{Revision: 2})
	_, grantErr := e.Grant(ctx, &pb.LeaseGrantRequest{TTL: 1})
	for what, err := range map[string]error{
		"range": rangeErr, "put": putErr, "compact": compactErr, "grant": grantErr, "check": e.Check(ctx),
	} {
		if !errors.Is(err, bolt.ErrClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
	if response, open := <-watch; open {
		t.Errorf("watch after close got %v", response)
	}
}

// TestCloseReleasesResources closes an engine during writes. No goroutine may be left, and exactly the writes acknowledged
// before the close are kept.
func TestCloseReleasesResources(t *testing.T) {
	defer testkit.NoGoroutines(t, goleak.IgnoreCurrent())
	path := filepath.Join(t.TempDir(), "store.db")
	e := reopen(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := bolt.NewClient(ctx, e)
	for range client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		break
	}
	var group errgroup.Group
	acknowledged := make([]int, 8)
	for w := range acknowledged {
		group.Go(func() error {
			for {
				key := fmt.Sprintf("/%d/%06d", w, acknowledged[w])
				if _, err := e.Put(ctx, &pb.PutRequest{Key: []byte(key)}); err != nil {
					return err
				}
				acknowledged[w]++
			}
		})
	}
	testkit.EventuallyTrue(t, "writes have started", func() bool { return e.Revision() > 50 })
	closeEngine(t, e)
	if err := group.Wait(); !errors.Is(err, bolt.ErrClosed) {
		t.Errorf("writers returned %v", err)
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e = reopen(t, path)
	defer closeEngine(t, e)
	for w, n := range acknowledged {
		if got := int(countOf(t, e, fmt.Sprintf("/%d/", w), 0)); got != n {
			t.Errorf("writer %d had %d writes acknowledged, the store has %d", w, n, got)
		}
	}
}

func countOf(t testing.TB, e *bolt.Engine, prefix string, revision int64) int64 {
	t.Helper()
	response, err := e.Range(t.Context(), &pb.RangeRequest{
		Key: []byte(prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(prefix)), Revision: revision, CountOnly: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return response.Count
}

func TestCheck(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	revision := e.Revision()
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if e.Revision() != revision {
		t.Error("Check changed the revision")
	}
}

func TestInvalidRequests(t *testing.T) {
	e := openEngine(t, bolt.Options{MaxRequestBytes: 100})
	client := bolt.NewClient(t.Context(), e)
	var tooMany []clientv3.Op
	for i := range bolt.MaxTxnOps + 1 {
		tooMany = append(tooMany, clientv3.OpPut(fmt.Sprint(i), ""))
	}
	tests := map[string]struct {
		ops  []clientv3.Op
		want error
	}{
		"too large":           {[]clientv3.Op{clientv3.OpPut("/a", strings.Repeat("x", 100))}, rpctypes.ErrRequestTooLarge},
		"key too long":        {[]clientv3.Op{clientv3.OpPut(strings.Repeat("k", 40000), "")}, rpctypes.ErrRequestTooLarge},
		"too many operations": {tooMany, rpctypes.ErrTooManyOps},
		"no key":              {[]clientv3.Op{clientv3.OpGet("")}, rpctypes.ErrEmptyKey},
		"key put twice":       {[]clientv3.Op{clientv3.OpPut("/a", ""), clientv3.OpPut("/a", "")}, rpctypes.ErrDuplicateKey},
		"key deleted to the end of all": {
			[]clientv3.Op{clientv3.OpPut("/b", ""), clientv3.OpDelete("/a", clientv3.WithFromKey())}, rpctypes.ErrDuplicateKey,
		},
		"no such lease": {[]clientv3.Op{clientv3.OpPut("/a", "", clientv3.WithLease(1))}, rpctypes.ErrLeaseNotFound},
		"future revision": {
			[]clientv3.Op{clientv3.OpPut("/a", ""), clientv3.OpGet("/a", clientv3.WithRev(9))}, rpctypes.ErrFutureRev,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Txn(t.Context()).Then(test.ops...).Commit(); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	if e.Revision() != 1 || countOf(t, e, "/", 0) != 0 {
		t.Errorf("invalid requests left revision %d and %d keys", e.Revision(), countOf(t, e, "/", 0))
	}
}

func TestCanceledRequest(t *testing.T) {
	e := openEngine(t, bolt.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, putErr := e.Put(ctx, &pb.PutRequest{Key: []byte("/a")})
	_, rangeErr := e.Range(ctx, &pb.RangeRequest{Key: []byte("/a")})
	if !errors.Is(putErr, context.Canceled) || !errors.Is(rangeErr, context.Canceled) {
		t.Errorf("put %v, range %v", putErr, rangeErr)
	}
}

// TestConcurrentCancellation cancels requests at random times. The engine must continue, and every acknowledged write must be
// in the store.
func TestConcurrentCancellation(t *testing.T) {
	const callers, each = 8, 200
	e := openEngine(t, bolt.Options{})
	var group errgroup.Group
	acknowledged := make([]int64, callers)
	for c := range callers {
		group.Go(func() error {
			for i := range each {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
				_, err := e.Put(ctx, &pb.PutRequest{Key: fmt.Appendf(nil, "/%d/%d", c, i)})
				cancel()
				switch {
				case err == nil:
					acknowledged[c]++
				case !errors.Is(err, context.Canceled):
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for c, n := range acknowledged {
		if got := countOf(t, e, fmt.Sprintf("/%d/", c), 0); got < n {
			t.Errorf("client %d had %d writes acknowledged, the store has %d", c, n, got)
		}
	}
}
