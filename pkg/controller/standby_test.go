// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// oldState returns watches that begin with the Lease as it was released long ago, as those of an API server whose watch cache lags behind.
func oldState(context.Context) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(1, false)
	w.Modify(&coordinationv1.Lease{})
	return w, nil
}

// TestAWatchThatDeliversOldState checks that a standby neither starts elections nor makes requests for a Lease that only looks free.
func TestAWatchThatDeliversOldState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		first, second := newRecorder(), newRecorder()
		close(first.drain)
		close(second.drain)
		_, _ = start(t, defaultLease(client, "a"), first)
		<-first.started
		standby := fake.NewClientset()
		var reads atomic.Int32
		standby.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			reads.Add(1)
			object, err := client.Invokes(action, &coordinationv1.Lease{})
			return true, object, err
		})
		lease := defaultLease(standby, "b")
		lease.Watch = oldState
		_, _ = start(t, lease, second)
		<-time.After(time.Minute)
		// Without events that follow, the Lease seems to have expired after its duration, and a lost election is followed by a pause.
		if n := reads.Load(); n > 40 {
			t.Errorf("%d requests in a minute", n)
		}
		if n := second.starts.Load(); n != 0 {
			t.Errorf("the standby has led %d times", n)
		}
	})
}

// TestALostElectionEnds checks that an election ends when another process writes the Lease first, so that the Lease is watched again.
func TestALostElectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var writes atomic.Int32
		leases := schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}
		client.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			writes.Add(1)
			return true, nil, apierrors.NewAlreadyExists(leases, leaseName)
		})
		m, err := NewManager(defaultLease(client, "a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.term(t.Context()); err != errNotElected { //nolint:errorlint // the very error
			t.Errorf("the term ended with %v, want %v", err, errNotElected)
		}
		if n := writes.Load(); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
	})
}
