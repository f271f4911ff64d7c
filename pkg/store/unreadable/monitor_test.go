// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/storage"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/test/testkit"
)

// failing is a storage whose reads fail.
type failing struct {
	storage.Interface
	err error
}

func (s failing) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return s.err
}

func (s failing) Get(context.Context, string, storage.GetOptions, runtime.Object) error { return s.err }

// TestLooksThatAreAskedFor checks that a monitor whose check takes a second runs one at most every 50 seconds, whatever
// clients request.
func TestLooksThatAreAskedFor(t *testing.T) {
	store, kv := newStore(t)
	put(t, kv, badKey, "good")
	clock := testingclock.NewFakeClock(time.Now())
	var looks atomic.Int64
	kv.before = func(string) {
		clock.Step(time.Second)
		looks.Add(1)
	}
	var checked atomic.Int64
	monitor := NewMonitor(store, clock, func(context.Context) { checked.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		monitor.Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	looked := func(want int64) {
		t.Helper()
		// Whether it looks once more shows when it waits for the clock again.
		testkit.Eventually(t, "the check", func() error {
			if n := looks.Load(); n < want || checked.Load() < want || !clock.HasWaiters() || len(monitor.wake) > 0 {
				return fmt.Errorf("%d looks, want %d", n, want)
			}
			return nil
		})
	}
	resource := schema.GroupResource{Group: "configbutler.ai", Resource: "gitrepoconfigs"}
	fail := func(err error, read func(*explainingStorage) error) {
		t.Helper()
		if got := read(&explainingStorage{Interface: failing{err: err}, resource: resource, monitor: monitor}); !errors.Is(got, err) {
			t.Errorf("the read ended with %v", got)
		}
	}
	get := func(s *explainingStorage) error { return s.Get(ctx, "/a", storage.GetOptions{}, nil) }
	list := func(s *explainingStorage) error { return s.GetList(ctx, "/", storage.ListOptions{}, nil) }
	stays := func(want int64) {
		t.Helper()
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			return looks.Load() != want, nil
		})
		if err == nil {
			t.Fatalf("%d looks, want %d", looks.Load(), want)
		}
	}

	looked(1)
	fail(storage.NewInternalError(errors.New("the key service is down")), get)
	stays(1)
	clock.Step(49 * time.Second)
	stays(1)
	clock.Step(time.Second)
	looked(2)
	clock.Step(50 * time.Second)
	for range 10 {
		fail(apierrors.NewTooManyRequests("storage is (re)initializing", 1), list)
		fail(storage.ErrStorageNotReady, list)
	}
	stays(2)
	put(t, kv, badKey, "bad") // The next look is due 500 seconds after the last.
	clock.Step(450 * time.Second)
	looked(3)
	if err := monitor.HealthCheck().Check(nil); err == nil {
		t.Error("the record was not found")
	}
}
