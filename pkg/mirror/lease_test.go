// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

var leaseTimes = Leases{Namespace: "system", Duration: 24 * time.Second, Renew: 8 * time.Second}

func leaseOf(client *fake.Clientset, identity string) *branchLease {
	return newBranchLease(client.CoordinationV1(), identity, leaseTimes, branchKey{url: "https://git.example.com/shop.git", branch: "main"})
}

func TestLeaseKeepsOthersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		one, two := leaseOf(client, "one"), leaseOf(client, "two")
		if err := one.hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held leaseHeldError
		err := two.hold(t.Context())
		if !errors.As(err, &held) || reasonOf(err, "").Code != v1alpha1.ReasonLeaseHeldElsewhere || two.holder != "one" {
			t.Fatalf("Lease held by %s: %v", two.holder, err)
		}
		if again := time.Until(held.until); again > leaseTimes.Renew {
			t.Errorf("next attempt after %s", again)
		}
		time.Sleep(leaseTimes.Duration - time.Second) //nolint:forbidigo // the clock of a bubble
		if err := two.hold(t.Context()); !errors.As(err, &held) {
			t.Errorf("Lease was taken too early: %v", err)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a bubble
		if err := two.hold(t.Context()); err != nil {
			t.Errorf("Lease was not taken over: %v", err)
		}
		if err := one.hold(t.Context()); !errors.As(err, &held) {
			t.Errorf("Lease is held by both: %v", err)
		}
		two.release(t.Context())
		if err := one.hold(t.Context()); err != nil {
			t.Errorf("Lease was not released: %v", err)
		}
	})
}

// TestLeaseAfterARestart checks that a process with the identity of the holder takes the Lease at once.
func TestLeaseAfterARestart(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		if err := leaseOf(client, "one").hold(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLeaseOfAClockThatIsAhead checks that a Lease that was renewed by a clock an hour ahead does not block others for an hour.
func TestLeaseOfAClockThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		if err := leaseOf(client, "one").hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		leases := client.CoordinationV1().Leases("system")
		list, err := leases.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		lease := &list.Items[0]
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
		if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		two := leaseOf(client, "two")
		if err := two.hold(t.Context()); err == nil {
			t.Fatal("Lease was taken at once")
		}
		time.Sleep(leaseTimes.Duration) //nolint:forbidigo // the clock of a bubble
		if err := two.hold(t.Context()); err != nil {
			t.Errorf("Lease was not taken over: %v", err)
		}
	})
}

func TestLeaseRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		lease := leaseOf(client, "one")
		push := func() {
			if err := lease.during(t.Context(), func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		requests := func(want int) {
			t.Helper()
			if got := len(client.Actions()); got != want {
				t.Errorf("%d requests, want %d: %v", got, want, client.Actions())
			}
			client.ClearActions()
		}
		push()
		requests(2)
		for range 70 { // pushes for 7 s
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the clock of a bubble
			push()
		}
		requests(0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of a bubble
		push()
		requests(2)
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of a bubble
		requests(0)
		lease.release(t.Context()) // it has expired
		requests(0)
		err := lease.during(t.Context(), func(context.Context) error {
			time.Sleep(time.Minute) //nolint:forbidigo // the clock of a bubble
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		requests(16) // a push of a minute renews it
	})
}

// waitsForLease has another server hold the Lease of the branch main until the destination of that name waits for it with a change.
func (s *fixture) waitsForLease(other *branchLease) (ready metav1.Condition) {
	s.t.Helper()
	changes := 0
	testkit.Eventually(s.t, "a change waits for the Lease", func() error {
		if err := other.hold(s.t.Context()); err != nil {
			return err
		}
		if s.record("main").PendingChanges == 0 { // Also if the Lease was lost meanwhile.
			changes++
			s.cluster.put(configMap("a"), fmt.Sprint("waits ", changes))
		}
		ready = s.ready("main")
		if holder := s.record("main").LeaseHolder; ready.Reason != v1alpha1.ReasonLeaseHeldElsewhere || holder != "two" {
			return fmt.Errorf("leaseHolder = %q; %s: %s", holder, ready.Reason, ready.Message)
		}
		return nil
	})
	return ready
}

func TestBranchThatAnotherServerWrites(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.leases = Leases{Namespace: "system", Duration: 2 * time.Second, Renew: 100 * time.Millisecond}
	})
	key := branchKey{url: s.in.repositories[0].Spec.RepoURL, branch: "main"}
	other := newBranchLease(s.secrets.CoordinationV1(), "two", s.leases, key)
	if ready := s.waitsForLease(other); !strings.Contains(ready.Message, "two writes the branch") {
		t.Errorf("message of Ready = %s", ready.Message)
	}
	s.mirrored() // after the other's Lease has expired
	testkit.Eventually(t, "the holder", func() error {
		if holder := s.record("main").LeaseHolder; holder != "system/one" {
			return fmt.Errorf("leaseHolder = %q", holder)
		}
		return nil
	})
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	s.stop()
	if err := other.hold(t.Context()); err != nil {
		t.Errorf("Lease was not released: %v", err)
	}
}

// TestLeasesOfDroppedBranches checks that the Lease of a branch is deleted with its last destination, and released if it cannot be deleted.
func TestLeasesOfDroppedBranches(t *testing.T) {
	for name, forbidden := range map[string]bool{"deleted": false, "forbidden": true} {
		t.Run(name, func(t *testing.T) {
			s := twoBranches(t)
			if forbidden {
				s.secrets.PrependReactor("delete", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}, "", nil)
				})
			}
			s.in.destinations = s.in.destinations[:1]
			s.plan()
			list, err := s.secrets.CoordinationV1().Leases("system").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var holders []string
			for _, lease := range list.Items {
				holders = append(holders, *lease.Spec.HolderIdentity)
			}
			slices.Sort(holders)
			want := []string{"system/one"}
			if forbidden {
				want = []string{"", "system/one"}
			}
			if !slices.Equal(holders, want) {
				t.Errorf("holders of Leases = %q, want %q", holders, want)
			}
		})
	}
}

// TestLeaseOfADroppedBranchOfAnother checks that an installation does not delete the Lease that another one holds.
func TestLeaseOfADroppedBranchOfAnother(t *testing.T) {
	client := fake.NewClientset()
	one, two := leaseOf(client, "one"), leaseOf(client, "two")
	if err := one.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	two.remove(t.Context())
	if list, err := client.CoordinationV1().Leases("system").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d Leases, want one; %v", len(list.Items), err)
	}
	one.remove(t.Context())
	if err := two.hold(t.Context()); err != nil {
		t.Errorf("the deleted Lease cannot be taken: %v", err)
	}
}

// TestResetWhileAnotherServerWrites has a destination whose files are rejected, with a backoff of an hour. A reset of the repository, as
// after a change of its Secret, ends the backoff also if the branch waits for the Lease of another server then.
func TestResetWhileAnotherServerWrites(t *testing.T) {
	s := newFixture(t, shared, func(s *fixture) {
		s.retry = time.Hour
		s.leases = Leases{Namespace: "system", Duration: 2 * time.Second, Renew: time.Second}
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.refuseFolder("b")
	s.cluster.put(configMap("a"), "2")
	s.waitReady("other", v1alpha1.ReasonPushRejected)
	s.mirrored()
	key := branchKey{url: s.in.repositories[0].Spec.RepoURL, branch: "main"}
	other := newBranchLease(s.secrets.CoordinationV1(), "two", s.leases, key)
	s.waitsForLease(other)
	s.git.hook(t, "shop.git", "pre-receive", "")
	s.registry.retryBranches(nameOf(s.in.repositories[0]))
	s.mirrored()
	s.holds("main", "b", inShop)
}

// TestLeaseOfALeaderThatWasKilled checks that the next leader of the installation takes over the Leases of branches without waiting.
func TestLeaseOfALeaderThatWasKilled(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	died := s.process.killAt("before push", 1)
	s.cluster.put(configMap("b"), "1")
	<-died
	s.stop()
	s.start()
	s.mirrored() // before the Lease expires after 24 s
}
