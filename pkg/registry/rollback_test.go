// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// forward is the end of each answer: how a catalog gets away from its pin.
const forward = `; to go forward again: kubectl patch appcatalog shop -n shop --type=merge -p '{"spec":{"pinnedRevision":null}}'`

func atRevision5(c *configbutler.AppCatalog) {
	c.Status.Revision, c.Status.History = 5, history(5, 4, 3)
}

func rollbackTo(revision int64) *configbutler.Rollback {
	return &configbutler.Rollback{Spec: configbutler.RollbackSpec{Revision: revision}}
}

// takeOver is what the controller does with an edit: it records what has changed, and shows the spec.
func takeOver(ctx context.Context, storage *registry.Storage) error {
	edited := func(catalog *configbutler.AppCatalog) bool {
		return catalog.Generation > catalog.Status.ObservedGeneration
	}
	return follow(ctx, storage, edited, func(catalog *configbutler.AppCatalog) error {
		record, err := newRecord(catalog, syncstatus.EditBatch(catalog.Generation),
			syncstatus.Step{To: v1alpha1.SyncStateApplied, By: "jane", At: noon})
		if err != nil {
			return err
		}
		record.Status.WorkloadCount = 1
		if _, err := storage.Records.Write(ctx, record); err != nil {
			return err
		}
		return editCatalog(ctx, storage, "appcatalogs/status", settle)
	})
}

func TestRollbackPinsARevision(t *testing.T) {
	for _, revision := range []int64{3, 5} { // 5 is the one that is offered
		storage := newStorage(t)
		before := newCatalog(t, storage, atRevision5)
		done := make(chan error, 1)
		go func() { done <- takeOver(in(t), storage) }()
		answer, err := ask(as(t, "jane"), storage, "appcatalogs/rollback", "shop", rollbackTo(revision))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		after := storedCatalog(t, storage)
		if pinned := after.Spec.PinnedRevision; pinned == nil || *pinned != revision || after.Generation != before.Generation+1 {
			t.Errorf("generation %d, spec %+v", after.Generation, after.Spec)
		}
		message := answer.Status.Message
		if !answer.Status.Accepted || len(answer.Status.SyncStatuses) != 1 ||
			!strings.HasPrefix(message, "AppCatalog shop goes from revision 5 to what it was at revision ") ||
			!strings.HasSuffix(message, ": 1 workload changed by jane"+forward) {
			t.Errorf("answer %+v", answer.Status)
		}
	}
}

// Until the controller takes it over, a rollback is an edit of the user that waits like any other.
func TestRollbackIsAnEdit(t *testing.T) {
	storage := newStorage(t, impatient)
	first := newCatalog(t, storage, atRevision5)
	answer, err := ask(as(t, "jane"), storage, "appcatalogs/rollback", "shop", rollbackTo(4))
	if err != nil {
		t.Fatal(err)
	}
	want := "AppCatalog shop goes from revision 5 to what it was at revision 4, and changes of the source wait" + forward
	if !answer.Status.Accepted || answer.Status.Message != want || len(answer.Status.SyncStatuses) > 0 {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
	if diff := cmp.Diff([]string{fmt.Sprint(first.Generation+1, " jane")}, waiting(t, storage)); diff != "" {
		t.Errorf("edits (-want +got):\n%s", diff)
	}
	edited := storedCatalog(t, storage)
	again, err := ask(as(t, "joe"), storage, "appcatalogs/rollback", "shop", rollbackTo(4))
	if err != nil {
		t.Fatal(err)
	}
	if want := "AppCatalog shop is pinned to revision 4 already" + forward; again.Status.Message != want || !again.Status.Accepted {
		t.Errorf("answer %+v, want %s", again.Status, want)
	}
	if second := storedCatalog(t, storage); second.ResourceVersion != edited.ResourceVersion {
		t.Errorf("the second time has changed the catalog: %+v", second)
	}
}

func TestRollbackRefuses(t *testing.T) {
	tests := map[string]struct {
		prepare  func(*configbutler.AppCatalog)
		revision int64
		want     string
	}{
		"a revision that is not kept": {
			prepare: atRevision5, revision: 2, want: `spec.revision: Unsupported value: "2": supported values: "5", "4", "3"`,
		},
		"no revision": {prepare: atRevision5, want: "spec.revision: Required value: name the revision to go to"},
		"a catalog without any": {
			prepare: func(*configbutler.AppCatalog) {}, revision: 1, want: "there is no revision to go to yet: status.history is empty",
		},
	}
	for name, tt := range tests {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			t.Run(name, func(t *testing.T) {
				storage := newStorage(t)
				before := newCatalog(t, storage, tt.prepare)
				_, err := ask(as(t, "jane"), storage, "appcatalogs/rollback", "shop", rollbackTo(tt.revision), dryRun...)
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				if after := storedCatalog(t, storage); after.ResourceVersion != before.ResourceVersion {
					t.Errorf("the catalog has changed: %+v", after)
				}
			})
		}
	}
}

func TestRollbackDryRun(t *testing.T) {
	storage := newStorage(t)
	newCatalog(t, storage, atRevision5)
	answer, err := ask(as(t, "jane"), storage, "appcatalogs/rollback", "shop", rollbackTo(3), metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	want := "AppCatalog shop would go from revision 5 to what it was at revision 3 (dry run)"
	if !answer.Status.Accepted || answer.Status.Message != want {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
}

// The history may lose a revision while admission is asked, and the source may bring a new one: neither is written over.
func TestRollbackWhileTheCatalogChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		history []configbutler.CatalogRevision
		refused bool
	}{
		"the revision is still kept": {history: history(6, 5, 4, 3)},
		"the revision goes":          {history: history(6, 5, 4), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, impatient)
			newCatalog(t, storage, atRevision5)
			meanwhile := func(context.Context, runtime.Object) error {
				return editCatalog(in(t), storage, "appcatalogs/status", func(c *configbutler.AppCatalog) {
					c.Status.Revision, c.Status.History = 6, tt.history
				})
			}
			_, err := storage.Endpoints["appcatalogs/rollback"].(rest.NamedCreater).Create(
				as(t, "jane"), "shop", rollbackTo(3), meanwhile, &metav1.CreateOptions{})
			if apierrors.IsInvalid(err) != tt.refused || err != nil && !tt.refused {
				t.Errorf("refused: %v", err)
			}
			if after := storedCatalog(t, storage); after.Status.Revision != 6 || (after.Spec.PinnedRevision == nil) != tt.refused {
				t.Errorf("%+v", after)
			}
		})
	}
}

// TestRollbackIsRecordedAsAFact checks that a rollback is recorded as a fact, since it changes the spec. A request that waits in the status
// does not.
func TestRollbackIsRecordedAsAFact(t *testing.T) {
	r := newRecorded(t, impatient)
	newCatalog(t, r.storage, atRevision5)
	r.recorder.take()
	of := func(subresource string) context.Context {
		return genericapirequest.WithRequestInfo(as(t, "jane"), &genericapirequest.RequestInfo{
			IsResourceRequest: true, Verb: "create", Resource: "appcatalogs", Subresource: subresource, Namespace: namespace,
		})
	}
	if _, err := ask(of("sync"), r.storage, "appcatalogs/sync", "shop", &configbutler.CatalogSync{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(of("rollback"), r.storage, "appcatalogs/rollback", "shop", rollbackTo(3)); err != nil {
		t.Fatal(err)
	}
	facts := r.recorder.take()
	if len(facts) != 1 || facts[0].Actor.Username != "jane" || facts[0].Operation != v1alpha1.OperationUpdate || facts[0].Name != "shop" {
		t.Errorf("facts = %+v", facts)
	}
}
