// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// audit knows who made each state of an object: whom its uid names, which is no part of the content.
type audit struct{}

var _ Authors = audit{}

func (audit) Listed(schema.GroupVersionResource, string) {}
func (audit) Observe(attribution.Event)                  {}

func (audit) Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error {
	deliver(ctx, attribution.Author{
		Signal: attribution.Audit, Actor: attribution.Actor{Username: string(event.Object.GetUID()), Groups: []string{"staff"}},
	})
	return nil
}

func by(author string) func(*unstructured.Unstructured) {
	return with(author, "metadata", "uid")
}

func TestRecordsSayWhoChangedTheSource(t *testing.T) {
	s := newStage(t, appCatalog("shop", "api", "worker"))
	s.authors = audit{}
	s.start(0)
	s.reaches("shop", 1)
	s.watching()
	s.windowPasses() // what the watches found at their start has been looked at
	s.put("api", "shop/api:2", by("alice"))
	s.put("api", "shop/api:2", by("deployment-controller"), with(int64(1), "status", "readyReplicas"))
	s.put("api", "shop/api:3", by("bob"))
	s.put("worker", "shop/worker:2", by("bob"))
	s.put("untracked", "shop/untracked:2", by("carol"))
	s.reaches("shop", 2)
	want := []v1alpha1.SourceAuthor{
		{Username: "bob", Signal: v1alpha1.SignalAudit, Workloads: 2}, {Username: "alice", Signal: v1alpha1.SignalAudit, Workloads: 1},
	}
	if got := s.ofRevision(2).Status.ChangedBy; !slices.Equal(got, want) {
		t.Errorf("changed by %+v, want %+v", got, want)
	}
}

func TestToolsAreNamedWhereNobodyTellsWhoTheirUsersAre(t *testing.T) {
	s := begunStage(t)
	s.windowPasses()
	s.put("api", "shop/api:2", with([]any{map[string]any{
		"manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
		"time": time.Now().UTC().Format(time.RFC3339), "fieldsV1": map[string]any{"f:spec": map[string]any{}},
	}}, "metadata", "managedFields"))
	s.reaches("shop", 2)
	want := []v1alpha1.SourceAuthor{{FieldManager: "kubectl-edit", Signal: v1alpha1.SignalManagedFields, Workloads: 1}}
	if got := s.ofRevision(2).Status.ChangedBy; !slices.Equal(got, want) {
		t.Errorf("changed by %+v, want %+v", got, want)
	}
}

// ofRevision is the record of a revision.
func (s *stage) ofRevision(revision int64) *v1alpha1.SyncStatus {
	s.Helper()
	all := s.syncStatuses()
	at := slices.IndexFunc(all, func(record v1alpha1.SyncStatus) bool { return record.Status.Revision == revision })
	if at < 0 {
		s.Fatalf("no record of revision %d: %q", revision, s.told())
	}
	return &all[at]
}
