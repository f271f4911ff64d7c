// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// leaseFixture is an engine with a fake clock.
type leaseFixture struct {
	*bolt.Engine
	clock  *clocktesting.FakeClock
	client *clientv3.Client
}

func newLeaseFixture(t *testing.T) *leaseFixture {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	e := openEngine(t, bolt.Options{Clock: clock, CompactionInterval: -1})
	return &leaseFixture{Engine: e, clock: clock, client: bolt.NewClient(t.Context(), e).Client}
}

func (f *leaseFixture) grant(t *testing.T, seconds int64) clientv3.LeaseID {
	t.Helper()
	response, err := f.client.Grant(t.Context(), seconds)
	if err != nil {
		t.Fatal(err)
	}
	return response.ID
}

func (f *leaseFixture) attach(t *testing.T, key string, lease clientv3.LeaseID) {
	t.Helper()
	if _, err := f.client.Put(t.Context(), key, "", clientv3.WithLease(lease)); err != nil {
		t.Fatal(err)
	}
}

// left returns the remaining seconds of a lease, -1 if it does not exist.
func (f *leaseFixture) left(t *testing.T, lease clientv3.LeaseID) int64 {
	t.Helper()
	response, err := f.client.TimeToLive(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	return response.TTL
}

func TestLeaseExpires(t *testing.T) {
	f := newLeaseFixture(t)
	short, long := f.grant(t, 10), f.grant(t, 100)
	f.attach(t, "/short/1", short)
	f.attach(t, "/short/2", short)
	f.attach(t, "/long", long)
	f.attach(t, "/moved", short)
	f.attach(t, "/moved", long)
	f.attach(t, "/freed", short)
	set(t, f.Engine, "/freed", "")
	watch := f.client.Watch(t.Context(), "/", clientv3.WithPrefix())
	revision := f.Revision()

	testkit.EventuallyTrue(t, "the engine waits for the next lease", f.clock.HasWaiters)
	f.clock.Step(9 * time.Second)
	if got := f.left(t, short); got != 1 {
		t.Errorf("lease has %d seconds left, want 1", got)
	}
	steps := 0
	testkit.EventuallyTrue(t, "the lease expires", func() bool {
		if steps++; steps < 60 { // The engine may set its timer after a step.
			f.clock.Step(time.Second)
		}
		return f.left(t, short) == -1
	})
	want := []string{"/short/1", "/short/2"}
	response, _ := receive(t, watch)
	if len(response.Events) != len(want) {
		t.Fatalf("expiry sent events %v", response.Events)
	}
	for i, event := range response.Events {
		if event.Type != clientv3.EventTypeDelete || string(event.Kv.Key) != want[i] || event.Kv.ModRevision != revision+1 {
			t.Errorf("expiry sent event %v, want a delete of %s at %d", event, want[i], revision+1)
		}
	}
	if got := countOf(t, f.Engine, "/", 0); got != 3 {
		t.Errorf("%d keys left, want 3", got)
	}
}

func TestLeaseIsKeptAlive(t *testing.T) {
	f := newLeaseFixture(t)
	lease := f.grant(t, 10)
	f.attach(t, "/a", lease)
	for range 5 {
		f.clock.Step(9 * time.Second)
		response, err := f.client.KeepAliveOnce(t.Context(), lease)
		if err != nil || response.TTL != 10 {
			t.Fatalf("keep alive: %v, %v", response, err)
		}
	}
	if got := read(t, f.Engine, "/a", 0); got == "" {
		t.Error("the key was deleted although its lease was kept alive")
	}
	if f.Revision() != 2 {
		t.Errorf("leases changed the revision to %d", f.Revision())
	}
}

func TestLeaseKeepAliveChannel(t *testing.T) {
	f := newLeaseFixture(t)
	responses, err := f.client.KeepAlive(t.Context(), f.grant(t, 10))
	if err != nil {
		t.Fatal(err)
	}
	if response, ok := <-responses; !ok || response.TTL != 10 {
		t.Errorf("response %v, open: %v", response, ok)
	}
}

func TestLeaseIsRevoked(t *testing.T) {
	f := newLeaseFixture(t)
	lease := f.grant(t, 10)
	f.attach(t, "/a", lease)
	f.attach(t, "/b", lease)
	keys, err := f.client.TimeToLive(t.Context(), lease, clientv3.WithAttachedKeys())
	if err != nil || len(keys.Keys) != 2 || string(keys.Keys[0]) != "/a" || keys.GrantedTTL != 10 {
		t.Errorf("lease %v (%v), want keys /a and /b and 10 seconds", keys, err)
	}
	if _, err := f.client.Revoke(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if countOf(t, f.Engine, "/", 0) != 0 || f.Revision() != 4 {
		t.Errorf("%d keys at revision %d, want none at 4", countOf(t, f.Engine, "/", 0), f.Revision())
	}
	_, revokeErr := f.client.Revoke(t.Context(), lease)
	_, keepErr := f.client.KeepAliveOnce(t.Context(), lease)
	if !errors.Is(revokeErr, rpctypes.ErrLeaseNotFound) || !errors.Is(keepErr, rpctypes.ErrLeaseNotFound) {
		t.Errorf("revoked lease: revoke %v, keep alive %v", revokeErr, keepErr)
	}
}

func TestInvalidLeases(t *testing.T) {
	f := newLeaseFixture(t)
	_, err := f.Grant(t.Context(), &pb.LeaseGrantRequest{TTL: 9_000_000_001})
	if !errors.Is(err, rpctypes.ErrLeaseTTLTooLarge) {
		t.Errorf("too long: %v", err)
	}
	for i, want := range []error{nil, rpctypes.ErrLeaseExist} {
		if _, err := f.Grant(t.Context(), &pb.LeaseGrantRequest{ID: 7, TTL: 9_000_000_000}); !errors.Is(err, want) {
			t.Errorf("grant %d of lease 7: %v, want %v", i, err, want)
		}
	}
	leases, err := f.client.Leases(t.Context())
	if err != nil || len(leases.Leases) != 1 || leases.Leases[0].ID != 7 {
		t.Errorf("leases %v (%v), want 7", leases, err)
	}
}

// TestLeasesAfterRestart reopens a store after some time, by a clock that may have been set back in between.
func TestLeasesAfterRestart(t *testing.T) {
	tests := map[string]struct {
		passed time.Duration
		left   int64
	}{
		"within the term":   {4 * time.Second, 6},
		"after the term":    {11 * time.Second, -1},
		"clock turned back": {-time.Hour, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			clock := clocktesting.NewFakeClock(time.Now())
			open := func() *leaseFixture {
				e, err := bolt.Open(t.Context(), path, bolt.Options{Clock: clock, CompactionInterval: -1})
				if err != nil {
					t.Fatal(err)
				}
				return &leaseFixture{Engine: e, clock: clock, client: bolt.NewClient(t.Context(), e).Client}
			}
			f := open()
			lease := f.grant(t, 10)
			f.attach(t, "/a", lease)
			closeEngine(t, f.Engine)
			clock.SetTime(clock.Now().Add(test.passed))
			f = open()
			defer closeEngine(t, f.Engine)
			testkit.EventuallyTrue(t, "leases are restored", func() bool { return f.left(t, lease) == test.left })
			if exists := countOf(t, f.Engine, "/a", 0) == 1; exists != (test.left > 0) {
				t.Errorf("the key exists: %v", exists)
			}
		})
	}
}
