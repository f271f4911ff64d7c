// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/testkit"
)

// revised adds a catalog record of an author's change of a workload, with a revision and a commit of the same number.
func (s *executorFixture) revised(catalog types.UID, revision int64, author, kind string) {
	s.Helper()
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: s.environment.Namespace, DetectedAt: testkit.Noon, First: syncstatus.Step{To: v1alpha1.SyncStateAutoApplied, At: testkit.Noon},
		Spec: v1alpha1.SyncStatusSpec{
			Type: v1alpha1.SyncTypeCatalog, Batch: fmt.Sprint(revision),
			Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectAppCatalog, Name: "shop", UID: catalog},
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	record.Status.Revision = revision
	record.Status.ChangedBy = []v1alpha1.SourceAuthor{{Username: author, Signal: v1alpha1.SignalAudit, Workloads: int32(revision)}}
	record.Status.Commits = []v1alpha1.MirroredCommit{{
		CommitSummary:  v1alpha1.CommitSummary{SHA: fmt.Sprint(revision), Time: metav1.Unix(revision, 0)},
		DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "main"},
	}}
	syncstatus.SetChanges(record, []v1alpha1.ResourceSummary{
		{Type: kind, Namespace: "production", Name: "one", ChangeType: v1alpha1.ChangeChanged},
	})
	s.api.Put(record)
	s.catalog.Status.History = append(s.catalog.Status.History, v1alpha1.CatalogRevision{Revision: revision, SyncStatus: record.Name})
}

// TestAuthors checks that a run records the authors of the changes that it applies: those of the revisions after the applied one, and those
// of written objects.
func TestAuthors(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to int64
		unknown  bool
		authors  []v1alpha1.SourceAuthor
		commits  []string
	}{
		"some revisions": {from: 1, to: 4, authors: []v1alpha1.SourceAuthor{
			{Username: "jane", Signal: v1alpha1.SignalAudit, Workloads: 4}, {Username: "joe", Signal: v1alpha1.SignalAudit, Workloads: 2},
		}, commits: []string{"4", "2"}},
		"one": {
			from: 1, to: 2, authors: []v1alpha1.SourceAuthor{{Username: "joe", Signal: v1alpha1.SignalAudit, Workloads: 2}}, commits: []string{"2"},
		},
		"none":                           {from: 4, to: 4},
		"back":                           {from: 4, to: 1},
		"of a catalog that is not known": {from: 1, to: 4, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newExecutorFixture(t)
			of := s.catalog.UID
			s.revised("another", 3, "jim", "Deployment")
			s.revised(of, 4, "jane", "Deployment")
			s.revised(of, 3, "jill", "CronJob")
			s.revised(of, 2, "joe", "Deployment")
			s.revised(of, 1, "jane", "Deployment")
			s.environment.Status.AppliedRevision = tt.from
			if !tt.unknown {
				s.api.Put(s.catalog)
			}
			s.run = func(context.Context, syncer.Request) (syncer.Result, error) {
				out := result(planned("Deployment", "ConfigMap"))
				out.Revision = tt.to
				return out, nil
			}
			got := s.mustDo(syncer.ModeSync, s.begin(v1alpha1.SyncTypeEnvironment)).Status
			var commits []string
			for _, commit := range got.Commits {
				commits = append(commits, commit.SHA)
			}
			if diff := cmp.Diff(tt.authors, got.ChangedBy) + cmp.Diff(tt.commits, commits); diff != "" {
				t.Errorf("wrong authors or commits (-want +got):\n%s", diff)
			}
		})
	}
}
