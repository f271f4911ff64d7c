// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// mirroredFixture returns a runningFixture with a mirror in the same process.
func mirroredFixture(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, appCatalog("shop", "api", "worker"))
	s.mirrored = true
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	return s
}

// pushCommit records a Change with a commit of the current version of a workload.
func (s *fixture) pushCommit(commit, destination, name string, edits ...func(*v1alpha1.ChangeSpec)) {
	s.Helper()
	version := strconv.Itoa(s.resourceVersion)
	change := v1alpha1.ChangeSpec{
		Object:           v1alpha1.ChangedObject{APIVersion: "apps/v1", Resource: "deployments", Namespace: "production", Name: name},
		Time:             metav1.NewMicroTime(noon),
		ResourceVersions: v1alpha1.ChangedVersions{First: version, Last: version},
		Commits: []v1alpha1.ChangeCommit{{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: destination}, SHA: commit, Time: metav1.NewTime(noon),
			Message: "[UPDATE] " + name, URL: "https://git.example.com/" + commit, BlobBefore: "before", BlobAfter: "after",
		}},
	}
	for _, edit := range edits {
		edit(&change)
	}
	if err := cmp.Or(s.history.Prepare(s.Context(), commit, []v1alpha1.ChangeSpec{change}), s.history.Record(s.Context(), commit)); err != nil {
		s.Fatal(err)
	}
}

// deletesFile edits a Change to one whose commit deletes the file.
func deletesFile(change *v1alpha1.ChangeSpec) { change.Commits[0].BlobAfter = "" }

// fromComparison edits a Change to one from a comparison.
func fromComparison(change *v1alpha1.ChangeSpec) { change.ResourceVersions.First = "" }

// commits returns the commits in the record of a revision.
func (s *fixture) commits(revision int64) string {
	s.Helper()
	for _, record := range s.syncStatuses() {
		if record.Status.Revision == revision {
			var out []string
			for _, commit := range record.Status.Commits {
				out = append(out, commit.SHA)
			}
			return strings.Join(out, " ")
		}
	}
	return ""
}

// waitForCommits waits until the record of a revision has the given commits.
func (s *fixture) waitForCommits(revision int64, want string) {
	s.Helper()
	s.eventually(fmt.Sprintf("record %d has the commits %q", revision, want), func() error {
		if got := s.commits(revision); got != want {
			return fmt.Errorf("commits = %q", got)
		}
		return nil
	})
}

func TestRecordsHaveCommits(t *testing.T) {
	s := mirroredFixture(t)
	var want []string
	for i := range 20 {
		s.put("api", fmt.Sprint("shop/api:", i+2))
		s.pushCommit(fmt.Sprint("c", i), "main", "api")
		want = append([]string{fmt.Sprint("c", i)}, want...)
	}
	s.put("worker", "shop/worker:2")
	s.pushCommit("w", "main", "worker")
	s.pushCommit("other", "main", "other")
	s.waitForEvents(21)
	s.waitForRevision("shop", 2)
	s.waitForCommits(2, "w "+strings.Join(want, " "))
	if got := s.commits(1); got != "" {
		t.Errorf("commits of the previous record = %s", got)
	}
	commit := s.syncStatuses()[1].Status.Commits[1]
	if commit.Message != "[UPDATE] api" || commit.URL != "https://git.example.com/c19" || !commit.Time.Equal(&metav1.Time{Time: noon}) ||
		commit.DestinationRef != (v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "main"}) {
		t.Errorf("commit = %+v", commit)
	}
	s.put("api", "shop/api:last")
	s.pushCommit("last", "main", "api")
	s.waitForRevision("shop", 3)
	s.waitForCommits(3, "last")
	s.waitForCommits(2, "w "+strings.Join(want, " "))
}

func TestRecordsHaveLaterCommits(t *testing.T) {
	s := mirroredFixture(t)
	s.put("api", "shop/api:2")
	version := s.resourceVersion
	s.waitForRevision("shop", 2)
	s.waitForCommits(2, "")
	s.put("api", "shop/api:2", with(int64(9), "status", "readyReplicas"))
	s.resourceVersion = version
	s.pushCommit("a", "main", "api")
	s.waitForCommits(2, "a")

	record := s.syncStatuses()[1]
	dismissed, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateDismissed, By: "dana", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.api.Write(t.Context(), dismissed); err != nil {
		t.Fatal(err)
	}
	s.pushCommit("b", "more", "api")
	s.waitForCommits(2, "b a")
	if status := s.syncStatuses()[1].Status; status.State != v1alpha1.SyncStateDismissed || status.ResolvedBy != "dana" {
		t.Errorf("record: state %s, resolved by %s", status.State, status.ResolvedBy)
	}
	s.pushCommit("late", "rest", "api", func(change *v1alpha1.ChangeSpec) {
		change.ResourceVersions = v1alpha1.ChangedVersions{Last: strconv.Itoa(version + 1)}
	})
	s.waitForCommits(2, "late b a")
}

func TestRecordsHaveOnlyCommitsOfTheirChanges(t *testing.T) {
	s := mirroredFixture(t)
	for i := range 3 {
		s.put("api", "shop/api:1", with(int64(5+i), "spec", "replicas"))
		s.pushCommit(fmt.Sprint("scaled", i), "main", "api")
	}
	s.stepWindow()
	s.put("api", "shop/api:2")
	s.pushCommit("image", "main", "api")
	s.waitForEvents(1)
	s.waitForRevision("shop", 2)
	s.waitForCommits(2, "image")
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
	})
	s.waitForRevision("shop", 3)
	s.remove("worker")
	s.resourceVersion++
	s.pushCommit("gone", "main", "worker", deletesFile)
	s.waitForRevision("shop", 4)
	s.waitForCommits(4, "gone")
	s.waitForCommits(3, "")
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[:1] })
	s.waitForRevision("shop", 5)
	s.waitForCommits(5, "")
}

func TestRecordsHaveTheNewestCommits(t *testing.T) {
	s := mirroredFixture(t)
	const changes = syncstatus.MaxCommits + 7
	for i := range changes {
		s.put("api", fmt.Sprint("shop/api:", i+2))
		s.pushCommit(fmt.Sprint(i), "main", "api")
		s.waitForEvents(int64(i) + 1) // The fake watch holds a hundred events at most.
	}
	s.waitForRevision("shop", 2)
	s.eventually("the last commit is in the record", func() error {
		if named := strings.Fields(s.commits(2)); len(named) != syncstatus.MaxCommits || named[0] != fmt.Sprint(changes-1) {
			return fmt.Errorf("%d commits: %v", len(named), named)
		}
		return nil
	})
}

// TestCommitsPushedWhileStopped has commits of changes that were recorded before the server stopped, and of later ones.
func TestCommitsPushedWhileStopped(t *testing.T) {
	s := mirroredFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.stop()
	s.pushCommit("a", "main", "api")
	s.put("api", "shop/api:3")
	s.pushCommit("b", "main", "api")
	s.put("worker", "shop/worker:2")
	s.pushCommit("w", "main", "worker", fromComparison)
	s.start(0)
	s.waitForRevision("shop", 3)
	s.waitForCommits(2, "a")
	s.waitForCommits(3, "w b")
}

// TestCrashBeforeCommitsAreAdded crashes the process at each of its writes in turn, and starts it again. Some commits were pushed before
// that, others are pushed afterwards.
func TestCrashBeforeCommitsAreAdded(t *testing.T) {
	for last := range 6 {
		s := mirroredFixture(t)
		s.stop()
		s.put("api", "shop/api:2")
		version := s.resourceVersion
		s.pushCommit("a", "main", "api")
		s.remove("worker")
		s.resourceVersion++
		ended := s.start(last + 1)
		s.eventually(fmt.Sprintf("the process crashes at write %d, or has no more writes", last+1), func() error {
			select {
			case <-ended:
				return nil
			default:
			}
			if s.catalog("shop").Status.Revision == 2 && s.commits(2) == "a" {
				return nil
			}
			return fmt.Errorf("records: %q", s.recordLines())
		})
		s.stop()
		s.pushCommit("gone", "main", "worker", deletesFile)
		s.start(0)
		s.waitForRevision("shop", 2)
		s.waitForCommits(2, "gone a")
		s.resourceVersion = version
		s.pushCommit("b", "more", "api")
		s.eventually(fmt.Sprintf("all commits are in the record after a crash at write %d", last+1), func() error {
			got := strings.Fields(s.commits(2))
			if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "gone"}) {
				return fmt.Errorf("commits = %v", got)
			}
			return nil
		})
		s.stop()
	}
}
