// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// auditAuthors returns authors known from the audit, given the number of workloads that each has changed.
func auditAuthors(names map[string]int32) []v1alpha1.SourceAuthor {
	var out []v1alpha1.SourceAuthor
	for name, workloads := range names {
		out = append(out, v1alpha1.SourceAuthor{Username: name, Signal: v1alpha1.SignalAudit, Workloads: workloads})
	}
	slices.SortFunc(out, syncstatus.CompareAuthors)
	return out
}

// expectAuthors checks the authors in the record of a revision.
func (s *fixture) expectAuthors(revision int64, want map[string]int32) {
	s.Helper()
	if got := s.recordOf(revision).Status.ChangedBy; !slices.Equal(got, auditAuthors(want)) {
		s.Errorf("changed by %+v, want %v", got, want)
	}
}

func TestComparisonsFindAuthors(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *fixture)
		want   map[string]int32
	}{
		"while stopped": {func(s *fixture) {
			s.stop()
			s.put("api", "shop/api:2", by("alice"))
			s.put("worker", "shop/worker:2", by("bob"))
			s.start(0)
		}, map[string]int32{"alice": 1, "bob": 1}},
		"while stopped, and one author is not known": {func(s *fixture) {
			s.stop()
			s.put("api", "shop/api:2", by("alice"))
			s.put("worker", "shop/worker:2")
			s.start(0)
		}, map[string]int32{"alice": 1}},
		"a deletion while stopped": {func(s *fixture) {
			s.stop()
			s.remove("worker")
			s.authors.deleters.Store("worker uid-of-worker", "carol")
			s.start(0)
		}, map[string]int32{"carol": 1}},
		"when a window overflows": {func(s *fixture) {
			s.stop()
			s.stepWindow()
			s.capacity = 1
			s.start(0)
			s.waitForWatches()
			s.stepWindow()
			s.put("api", "shop/api:2", by("alice"))
			s.put("worker", "shop/worker:2", by("alice"))
			s.waitForEvents(2)
		}, map[string]int32{"alice": 2}},
		"when events are late": {func(s *fixture) {
			s.authors.late.Store(true)
			s.put("api", "shop/api:2", by("alice"))
			s.waitForEvents(1)
			s.replace("shop", func(catalog *v1alpha1.AppCatalog) {
				catalog.Status.PendingSyncs = []v1alpha1.PendingCatalogSync{{ID: "1", Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
			})
		}, map[string]int32{"alice": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := runningFixture(t)
			test.change(s)
			s.waitForRevision("shop", 2)
			s.expectAuthors(2, test.want)
		})
	}
}

// TestComparisonsWaitForAuthors has changes that no event reports: the author of one is known only after the end of the window, that of
// the other never.
func TestComparisonsWaitForAuthors(t *testing.T) {
	s := runningFixture(t)
	s.stop()
	s.authors.awaited.Store(true)
	s.put("api", "shop/api:2", by("alice"))
	s.start(0)
	s.step(40)
	s.expectRecords(firstRecord)
	s.authors.awaited.Store(false)
	s.waitForRevision("shop", 2)
	s.expectAuthors(2, map[string]int32{"alice": 1})
	s.stop()
	s.authors.awaited.Store(true)
	s.put("api", "shop/api:3", by("bob"))
	s.start(0)
	s.waitForRevision("shop", 3)
	s.expectAuthors(3, nil)
}

// TestComparisonsAttributeOnlyFoundChanges has a change whose author an event has reported, and a change that an edit applies, which is
// attributed to the editor.
func TestComparisonsAttributeOnlyFoundChanges(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2", by("alice"))
	s.waitForEvents(1)
	s.authors.late.Store(true)
	s.put("api", "shop/api:3", by("bob"))
	s.waitForEvents(2)
	s.waitForRevision("shop", 2)
	s.expectAuthors(2, map[string]int32{"alice": 1})
	s.put("db", "shop/db:1", by("carol"))
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.Workloads = append(catalog.Spec.Workloads, reference{Kind: v1alpha1.WorkloadDeployment, Name: "db"})
	})
	s.waitForRevision("shop", 3)
	s.expectAuthors(3, nil)
}

// TestCrashAfterAuthorsWereFound crashes a process at each of its writes in turn. The next process no longer knows the authors.
func TestCrashAfterAuthorsWereFound(t *testing.T) {
	for last := range 6 {
		t.Run(fmt.Sprint("write ", last+1), func(t *testing.T) {
			s := runningFixture(t)
			s.stop()
			s.put("api", "shop/api:2", by("alice"))
			ended := s.start(last + 1)
			s.eventually("the process crashes", func() error {
				select {
				case <-ended:
					return nil
				default:
				}
				if s.catalog("shop").Status.Revision == 2 {
					return nil
				}
				return fmt.Errorf("records: %q", s.recordLines())
			})
			s.stop()
			written := len(s.syncStatuses()) > 1
			s.authors.forgotten.Store(true)
			s.start(0)
			s.waitForRevision("shop", 2)
			if written {
				s.expectAuthors(2, map[string]int32{"alice": 1})
			} else {
				s.expectAuthors(2, nil)
			}
		})
	}
}

// repeatedFacts delivers facts repeatedly, so that none expires while a test runs.
type repeatedFacts []attribution.Fact

func (r repeatedFacts) Follow(ctx context.Context, deliver func(facts []attribution.Fact, recovered bool)) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		deliver(r, false)
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (repeatedFacts) Forget(...types.UID) {}

func (repeatedFacts) Lags(context.Context, string) (attribution.Lags, error) {
	return attribution.Lags{}, nil
}

func (repeatedFacts) StoreLags(context.Context, string, attribution.Lags) error { return nil }

// TestComparisonsWithAJoiner has a real Joiner, and a Deployment whose status a controller has written after the change.
func TestComparisonsWithAJoiner(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"))
	s.clock.SetTime(time.Now().Add(-24 * time.Hour))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.stop()
	at := time.Now().Add(-30 * time.Second)
	writtenBy := func(manager, subresource string) func(*unstructured.Unstructured) {
		return func(object *unstructured.Unstructured) {
			entries, _, _ := unstructured.NestedSlice(object.Object, "metadata", "managedFields")
			entry := map[string]any{"manager": manager, "subresource": subresource, "time": at.UTC().Format(time.RFC3339)}
			_ = unstructured.SetNestedSlice(object.Object, append(entries, entry), "metadata", "managedFields")
		}
	}
	fact := func(user, workload string, operation v1alpha1.Operation) attribution.Fact {
		return attribution.Fact{
			ID: user + workload, Signal: attribution.Audit, Operation: operation, Group: "apps", Resource: "deployments",
			Namespace: "production", Name: workload, UID: types.UID("uid-of-" + workload), After: fmt.Sprint(s.resourceVersion),
			Begun: at, Ended: at, Actor: attribution.Actor{Username: user},
		}
	}
	s.put("api", "shop/api:2")
	update := fact("alice", "api", v1alpha1.OperationUpdate)
	s.put("api", "shop/api:2", writtenBy("kubectl", ""), writtenBy("kube-controller-manager", "status"))
	s.remove("worker")
	s.facts = repeatedFacts{update, fact("bob", "worker", v1alpha1.OperationDelete)}
	s.start(0)
	s.waitForRevision("shop", 2)
	s.expectAuthors(2, map[string]int32{"alice": 1, "bob": 1})
}
