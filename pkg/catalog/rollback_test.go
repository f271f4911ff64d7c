// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// pin returns an edit that pins a revision, or removes the pin if it is 0.
func pin(revision int64) func(*v1alpha1.AppCatalog) {
	return func(catalog *v1alpha1.AppCatalog) {
		if catalog.Spec.PinnedRevision = &revision; revision == 0 {
			catalog.Spec.PinnedRevision = nil
		}
	}
}

// threeRevisions returns a fixture with three revisions: the second changed api, the third removed worker and patched api.
func threeRevisions(t *testing.T) (s *fixture, records []string) {
	t.Helper()
	s = runningFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.Workloads = catalog.Spec.Workloads[:1]
		catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
	})
	s.waitForRevision("shop", 3)
	return s, []string{firstRecord, "shop 2 AutoApplied Changed api (1)", "shop 3 Applied by adam Changed api Removed worker (2)"}
}

// waitForImages waits until the catalog shop offers images. CatalogWorkloads are deleted after the status was written.
func (s *fixture) waitForImages(want map[string]string) {
	s.Helper()
	s.eventually("the workloads that it offers", func() error {
		if got := s.images("shop"); !maps.Equal(got, want) {
			return fmt.Errorf("offered images = %v, want %v", got, want)
		}
		return nil
	})
}

func TestRevisionsAreStored(t *testing.T) {
	s, _ := threeRevisions(t)
	offered, err := revisions.New(s.store()).Offered(t.Context(), s.catalog("shop").UID, 2)
	if err != nil || len(offered) != 2 {
		t.Fatalf("%v: %v", offered, err)
	}
	if api := offered[reference{Kind: "Deployment", Name: "api"}]; !strings.Contains(string(api.Manifest.Raw), "shop/api:2") {
		t.Errorf("manifest of api = %s", api.Manifest.Raw)
	}
	if offered, err := revisions.New(s.store()).Offered(t.Context(), s.catalog("shop").UID, 9); err != nil || offered != nil {
		t.Errorf("Offered of a missing revision returned %v, %v", offered, err)
	}
}

func TestRollbacksRestoreRevisions(t *testing.T) {
	s, records := threeRevisions(t)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 4)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	records = append(records, "shop 4 Applied by bob Changed api Added worker (2)")
	s.expectRecords(records...)

	// Neither the source nor another edit changes a pinned catalog, nor does a restart.
	s.put("api", "shop/api:3")
	s.edit("shop", "carol", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
	s.stepWindow()
	s.stop()
	s.start(0)
	s.waitForWatches()
	s.stepWindow()
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	s.expectRecords(records...)

	s.edit("shop", "dave", pin(3))
	s.waitForRevision("shop", 5)
	s.waitForImages(map[string]string{"api": "patched"})
	if held := s.workload("api"); held.Manifest == nil || !strings.Contains(string(held.Manifest.Raw), "shop/api:2") {
		t.Errorf("captured manifest = %+v", held.Manifest)
	}

	s.put("api", "shop/api:4")
	s.edit("shop", "erin", pin(0))
	s.waitForRevision("shop", 6)
	s.stepWindow()
	s.waitForImages(map[string]string{"api": "shop/api:4"})
	s.expectRecords(append(records, "shop 5 Applied by dave Changed api Removed worker (2)", "shop 6 Applied by erin Changed api (1)")...)
	if status := s.catalog("shop").Status; status.Revision != 6 || len(status.History) != 6 {
		t.Errorf("status = %+v", status)
	}
}

// TestRollbacksKeepWhatWasTaken rolls back several times. The revision that was last taken from the source stays known and stored, although
// the history is too short for it.
func TestRollbacksKeepWhatWasTaken(t *testing.T) {
	s, _ := threeRevisions(t)
	stored := revisions.New(s.store())
	taken := func(of, want int64) {
		t.Helper()
		if got, err := stored.Taken(t.Context(), s.catalog("shop").UID, of); err != nil || got != want {
			t.Errorf("revision %d is of what was taken with revision %d, want %d: %v", of, got, want, err)
		}
	}
	taken(3, 3)
	taken(9, 0)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.HistoryLimit = new(int32(2)) })
	for revision, to := range []int64{4: 2, 5: 3, 6: 4} {
		if to > 0 {
			s.edit("shop", "bob", pin(to))
			s.waitForRevision("shop", int64(revision))
			taken(int64(revision), 3)
		}
	}
	s.stop()
	if err := stored.Prune(t.Context(), s.catalog("shop")); err != nil {
		t.Fatal(err)
	}
	if offered, err := stored.Offered(t.Context(), s.catalog("shop").UID, 3); err != nil || len(offered) != 1 {
		t.Errorf("revision 3 = %v, %v", offered, err)
	}
	s.start(0)
	s.edit("shop", "erin", pin(0))
	s.waitForRevision("shop", 7)
	taken(7, 7)
}

// TestEndsOfRollbacks checks that the end of a rollback keeps nothing of the earlier revision: a workload that the source has no more is
// offered as it was last taken.
func TestEndsOfRollbacks(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.remove("api")
	s.waitForRevision("shop", 3)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 4)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	s.edit("shop", "erin", pin(0))
	s.waitForRevision("shop", 5)
	s.waitForImages(map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	if entries := s.catalog("shop").Status.Workloads; len(entries) != 2 || !entries[0].Missing || entries[1].Missing {
		t.Errorf("workloads = %+v", entries)
	}
	if got, err := revisions.New(s.store()).Taken(t.Context(), s.catalog("shop").UID, 5); err != nil || got != 5 {
		t.Errorf("revision 5 is of what was taken with revision %d: %v", got, err)
	}
}

// TestEndOfRollbackBringsBack ends a rollback to a revision without a workload that the source has no more.
func TestEndOfRollbackBringsBack(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker", "late"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.put("late", "shop/late:1")
	s.waitForRevision("shop", 2)
	s.remove("late")
	s.waitForRevision("shop", 3)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 4)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
	s.edit("shop", "erin", pin(0))
	s.waitForRevision("shop", 5)
	s.waitForImages(map[string]string{"api": "shop/api:1", "late": "shop/late:1", "worker": "shop/worker:1"})
	if entries := s.catalog("shop").Status.Workloads; len(entries) != 3 || !entries[1].Missing {
		t.Errorf("workloads = %+v", entries)
	}
}

// TestRevisionsAfterRollbacks checks that a revision of which some content may be that of a rollback does not count as taken from the
// source, such as that of a source change after the end of the rollback has failed.
func TestRevisionsAfterRollbacks(t *testing.T) {
	s := newFixture(t)
	stored, catalog := revisions.New(s.store()), appCatalog("shop")
	for i, step := range []struct {
		content revisions.Content
		taken   int64
	}{
		{revisions.Content{}, 1},
		{revisions.Content{}, 2},
		{revisions.Content{IsRollback: true}, 2},
		{revisions.Content{}, 2},
		{revisions.Content{IsRollback: true}, 2},
		{revisions.Content{EndsRollback: true}, 6},
		{revisions.Content{}, 7},
	} {
		revision := int64(i + 1)
		if err := stored.Write(t.Context(), catalog, revision, step.content); err != nil {
			t.Fatal(err)
		}
		catalog.Status.Revision = revision
		catalog.Status.History = append(catalog.Status.History, v1alpha1.CatalogRevision{Revision: revision})
		if got, err := stored.Taken(t.Context(), catalog.UID, revision); err != nil || got != step.taken {
			t.Errorf("revision %d is of what was taken with revision %d, want %d: %v", revision, got, step.taken, err)
		}
	}
}

// TestSourceChangeAfterFailedEndOfRollback removes a pin together with an edit that fails, and then changes the source. The next revision
// has content of the rollback, so it does not count as taken from the source.
func TestSourceChangeAfterFailedEndOfRollback(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 3)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		failing := failingPatch
		failing.Target.Name = "worker"
		catalog.Spec.PinnedRevision, catalog.Spec.Patches = nil, []v1alpha1.Patch{failing}
	})
	s.waitForState(v1alpha1.SyncStateFailed)
	s.put("api", "shop/api:3")
	s.stepWindow()
	s.waitForRevision("shop", 4)
	s.waitForImages(map[string]string{"api": "shop/api:3", "worker": "shop/worker:1"})
	if got, err := revisions.New(s.store()).Taken(t.Context(), s.catalog("shop").UID, 4); err != nil || got != 2 {
		t.Errorf("revision 4 is of what was taken with revision %d, want 2: %v", got, err)
	}
}

// TestEndOfRollbackWithoutChanges ends a rollback when the source has the content of the earlier revision again.
func TestEndOfRollbackWithoutChanges(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 3)
	s.put("api", "shop/api:1")
	s.stepWindow()
	stored := revisions.New(s.store())
	if got, err := stored.Taken(t.Context(), s.catalog("shop").UID, 3); err != nil || got != 2 {
		t.Errorf("revision 3 is of what was taken with revision %d: %v", got, err)
	}
	s.edit("shop", "erin", pin(0))
	s.eventually("the end of the rollback", func() error {
		if got, err := stored.Taken(t.Context(), s.catalog("shop").UID, 3); err != nil || got != 3 {
			return fmt.Errorf("revision 3 is of what was taken with revision %d: %w", got, err)
		}
		return nil
	})
	if revision := s.catalog("shop").Status.Revision; revision != 3 {
		t.Errorf("revision = %d", revision)
	}
}

func TestRollbacksDoNotWaitForPauses(t *testing.T) {
	s, records := threeRevisions(t)
	s.pause("shop", "eve")
	s.edit("shop", "bob", pin(2))
	s.waitForRevision("shop", 4)
	s.expectRecords(append(records, "shop 4 Applied by bob Changed api Added worker (2)")...)
}

func TestRollbackToARevisionThatIsNotStored(t *testing.T) {
	s, records := threeRevisions(t)
	if err := revisions.New(s.store()).Delete(t.Context(), "uid-of-shop"); err != nil {
		t.Fatal(err)
	}
	s.edit("shop", "adam", pin(1))
	record := s.waitForState(v1alpha1.SyncStateManualIntervention)
	if why := record.Status.Error; why.Reason != v1alpha1.ReasonRevisionNotKept || !strings.Contains(why.Message, "revision 1") ||
		record.Status.Attempts != 1 {
		t.Errorf("status of the record = %+v, error %+v", record.Status, why)
	}
	s.waitForImages(map[string]string{"api": "patched"})
	ready := meta.FindStatusCondition(s.catalog("shop").Status.Conditions, v1alpha1.ConditionReady)
	if s.catalog("shop").Status.Revision != 3 || ready.Reason != v1alpha1.ReasonRevisionNotKept {
		t.Errorf("revision = %d, Ready = %+v", s.catalog("shop").Status.Revision, ready)
	}

	s.edit("shop", "bob", pin(0))
	s.waitForRevision("shop", 3)
	s.put("api", "shop/api:3", with(true, "spec", "paused"))
	s.waitForRevision("shop", 4)
	if got := s.recordLines(); len(got) != len(records)+2 {
		t.Errorf("records = %q", got)
	}
	if !meta.IsStatusConditionTrue(s.catalog("shop").Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("conditions = %+v", s.catalog("shop").Status.Conditions)
	}
}

// TestRevisionsStoreOnlyChangedManifests counts the stored manifests.
func TestRevisionsStoreOnlyChangedManifests(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	s := newFixture(t, appCatalog("shop", names...))
	for _, name := range names {
		s.put(name, "shop/"+name+":1")
	}
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	if n := s.countRows("manifest/"); n != 100 {
		t.Errorf("%d stored manifests of 100 workloads", n)
	}
	for i := range 3 {
		s.put("w7", fmt.Sprintf("shop/w7:%d", i+2))
		s.waitForRevision("shop", int64(i+2))
	}
	if n := s.countRows("manifest/"); n != 103 {
		t.Errorf("%d stored manifests after three changes", n)
	}
	s.edit("shop", "adam", pin(1))
	s.waitForRevision("shop", 5)
	if n := s.countRows("manifest/"); n != 103 {
		t.Errorf("%d stored manifests after a rollback", n)
	}
}

func TestRevisionsAreDeletedWithTheHistory(t *testing.T) {
	s, _ := threeRevisions(t)
	s.edit("shop", "bob", pin(1))
	s.waitForRevision("shop", 4)
	s.edit("shop", "bob", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.HistoryLimit = new(int32(1)) })
	s.waitForRevision("shop", 4)
	s.eventually("revisions that cannot be restored are deleted", func() error {
		// Those of revisions 4, 1 and 3 remain: 1 is pinned, and 3 was last taken from the source. The captured manifest of 3 was stored
		// with revision 2.
		if heads, manifests := s.countRows("head/"), s.countRows("manifest/"); heads != 3 || manifests != 4 {
			return fmt.Errorf("%d heads and %d stored manifests", heads, manifests)
		}
		return nil
	})
	if history := s.catalog("shop").Status.History; len(history) != 1 || history[0].Revision != 4 {
		t.Errorf("history = %+v", history)
	}
	// The pinned revision is kept although it is no longer in the history.
	s.edit("shop", "bob", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = nil })
	s.waitForRevision("shop", 4)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
}

func TestRevisionsAreDeletedWithTheCatalog(t *testing.T) {
	for name, deleted := range map[string]func(s *fixture){
		"while it is followed":            func(s *fixture) { s.deleteCatalog("shop") },
		"while the server is stopped":     func(s *fixture) { s.stop(); s.deleteCatalog("shop"); s.start(0) },
		"and recreated in a single event": func(s *fixture) { s.recreate("shop") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, appCatalog("shop", "api"), appCatalog("work", "worker"))
			s.start(0)
			s.waitForRevision("shop", 1)
			s.waitForRevision("work", 1)
			if n := s.countRows(""); n != 6 {
				t.Fatalf("%d stored rows of two catalogs", n)
			}
			deleted(s)
			s.eventually("its rows are deleted", func() error {
				if n := s.countRows(""); n != 3 {
					return fmt.Errorf("%d stored rows of one catalog", n)
				}
				return nil
			})
		})
	}
}

// countRows counts the stored rows of revisions whose key has a prefix.
func (s *fixture) countRows(prefix string) int64 {
	s.Helper()
	n, err := s.store().Table(revisions.TableName).Count(s.Context(), prefix)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *fixture) deleteCatalog(name string) {
	s.Helper()
	fakeapi.Delete[*v1alpha1.AppCatalog](s.api, "teams", name)
}

// workload returns the CatalogWorkload of the catalog shop for a Deployment.
func (s *fixture) workload(name string) *v1alpha1.CatalogWorkloadRecord {
	s.Helper()
	all := s.workloads()
	at := slices.IndexFunc(all, func(r *v1alpha1.CatalogWorkload) bool {
		return r.Status.Name == name && r.Labels[v1alpha1.LabelCatalog] == "shop"
	})
	if at < 0 {
		s.Fatalf("catalog shop has no workload %s", name)
	}
	return &all[at].Status
}
