// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

const goForward = `; to go forward again: kubectl patch environment alice -n shop --type=merge -p '{"spec":{"pinnedRevision":null}}'`

// thenSync is for an environment that takes nothing by itself.
const thenSync = ", and then ask for a sync"

// A rollback is an edit by the user who asks for it, and its record that of the edit.
func TestRollbackOfAnEnvironment(t *testing.T) {
	storage := newStorage(t)
	newEnvironment(t, storage, asIs)
	var record *v1alpha1.SyncStatus
	pinned := func(e envt) bool { return e.Spec.PinnedRevision != nil }
	wait := leading(t, storage, pinned, func(e envt) (err error) {
		if record, err = recordIn(in(t), storage, e, v1alpha1.SyncTypeEnvironment, syncstatus.EditBatch(e.Generation)); err != nil {
			return err
		}
		return editEnvironment(in(t), storage, "environments/status", func(e envt) { e.Status.ObservedGeneration = e.Generation })
	})
	answer, err := ask(as(t, "jane"), storage, "environments/rollback", "alice", rollbackTo(3))
	if err != nil {
		t.Fatal(err)
	}
	wait()
	want := fmt.Sprintf("Environment alice goes from revision 4 to revision 3 of its catalog, and automatic syncs wait; "+
		"SyncStatus %s: Waiting",
		record.Name) + goForward + thenSync
	if !answer.Status.Accepted || answer.Status.Message != want || !slices.Equal(answer.Status.SyncStatuses, []string{record.Name}) {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
	edits := environmentEdits(t, storage)
	if diff := cmp.Diff([]string{"2 jane pinnedRevision"}, edits[len(edits)-1:]); diff != "" ||
		*storedEnvironment(t, storage).Spec.PinnedRevision != 3 {
		t.Errorf("edits (-want +got):\n%s", diff)
	}
	before := storedEnvironment(t, storage)
	answer, err = ask(as(t, "joe"), storage, "environments/rollback", "alice", rollbackTo(3))
	want = "Environment alice is pinned to revision 3 already; the subresource sync brings it there again" + goForward + thenSync
	if err != nil || answer.Status.Message != want {
		t.Errorf("again: %v: %+v, want %s", err, answer, want)
	}
	unchanged(t, storage, before)
}

// With autoSync, the pin is all that holds an environment back.
func TestRollbackOfAnEnvironmentThatSyncsByItself(t *testing.T) {
	storage := newStorage(t)
	revision := int64(3)
	newEnvironment(t, storage, func(e envt) { e.Spec.AutoSync, e.Spec.PinnedRevision = true, &revision })
	answer, err := ask(as(t, "jane"), storage, "environments/rollback", "alice", rollbackTo(revision))
	want := "Environment alice is pinned to revision 3 already; the subresource sync brings it there again" + goForward
	if err != nil || answer.Status.Message != want {
		t.Errorf("%v: %+v, want %s", err, answer, want)
	}
}

func TestRollbackOfAnEnvironmentRefuses(t *testing.T) {
	tests := map[string]struct {
		change   func(envt)
		revision int64
		deleted  bool
		is       func(error) bool
		want     string
	}{
		"a revision that was not applied": {
			change: asIs, revision: 5, is: apierrors.IsInvalid, want: `spec.revision: Unsupported value: "5": supported values: "4", "3"`,
		},
		"no revision": {
			change: asIs, is: apierrors.IsInvalid, want: "spec.revision: Required value: name the revision to go to",
		},
		"nothing was applied": {
			change: func(e envt) { e.Status.History = nil }, revision: 1, is: apierrors.IsInvalid,
			want: "there is no revision to go to yet: status.history is empty",
		},
		"it is being deleted": {change: held, revision: 3, deleted: true, is: apierrors.IsConflict, want: "it is being deleted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			storage := newStorage(t, impatient)
			newEnvironment(t, storage, tt.change)
			if tt.deleted {
				deleteEnvironment(t, storage)
			}
			before := storedEnvironment(t, storage)
			for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
				_, err := ask(as(t, "jane"), storage, "environments/rollback", "alice", rollbackTo(tt.revision), dryRun...)
				if !tt.is(err) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v: %v, want %s", dryRun, err, tt.want)
				}
			}
			unchanged(t, storage, before)
		})
	}
}

func TestRollbackOfAnEnvironmentDryRun(t *testing.T) {
	storage := newStorage(t)
	before := newEnvironment(t, storage, asIs)
	answer, err := ask(as(t, "jane"), storage, "environments/rollback", "alice", rollbackTo(3), metav1.DryRunAll)
	if want := "Environment alice would go from revision 4 to revision 3 of its catalog (dry run)"; err != nil ||
		answer.Status.Message != want {
		t.Errorf("%v: %+v, want %s", err, answer, want)
	}
	unchanged(t, storage, before)
}
