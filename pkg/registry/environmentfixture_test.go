// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// newEnvironment stores the AppCatalog shop, which offers api and web with the revision 5, and the Environment alice as change
// makes it, its status included, and returns that.
func newEnvironment(t *testing.T, storage *registry.Storage, change func(envt)) envt {
	t.Helper()
	newCatalog(t, storage, func(c *configbutler.AppCatalog) {
		c.Status.Revision, c.Status.LatestSync = 5, "shop-newer"
		for _, name := range []string{"api", "web"} {
			c.Status.Workloads = append(c.Status.Workloads, configbutler.CatalogEntry{
				Kind: configbutler.WorkloadDeployment, Name: name, Revision: 5,
			})
		}
	})
	createEnvironment(as(t, "eve"), t, storage, environment())
	if err := editEnvironment(in(t), storage, "environments/status", func(e envt) {
		status := &e.Status
		status.ObservedGeneration, status.PendingEdits, status.History, status.ChangedWorkloadCount = 1, nil, history(4, 3), 2
		status.AppliedRevision, status.AppliedCatalogSync = 4, "shop-older"
		status.LatestRevision, status.LatestCatalogSync = 5, "shop-newer"
		change(e)
	}); err != nil {
		t.Fatal(err)
	}
	if err := editEnvironment(in(t), storage, "environments", change); err != nil {
		t.Fatal(err)
	}
	return storedEnvironment(t, storage)
}

// asIs is an environment to which the catalog offers something.
func asIs(envt) {}

// held is an environment that stays when it is deleted.
func held(e envt) { e.Finalizers = []string{"example.com/hold"} }

// deleteEnvironment asks for the end of the environment.
func deleteEnvironment(t *testing.T, storage *registry.Storage) {
	t.Helper()
	if _, _, err := storage.Endpoints["environments"].(rest.GracefulDeleter).Delete(
		in(t), "alice", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// leading does once what the controller of environments does, as soon as the Environment alice is as due says. It returns what waits
// until it is done.
func leading(t *testing.T, storage *registry.Storage, due func(envt) bool, do func(envt) error) (wait func()) {
	t.Helper()
	ctx, done := in(t), make(chan error, 1)
	go func() {
		done <- func() error {
			watched, err := storage.Endpoints["environments"].(rest.Watcher).Watch(ctx, &internalversion.ListOptions{})
			if err != nil {
				return err
			}
			defer watched.Stop()
			for event := range watched.ResultChan() {
				if e := event.Object.(envt); due(e) {
					return do(e.DeepCopy())
				}
			}
			return errors.New("the watch has ended")
		}()
	}()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// asked says that a request waits.
func asked(e envt) bool { return len(e.Status.PendingRequests) > 0 }

// taken has the environment say that its requests have been taken up.
func taken(ctx context.Context, storage *registry.Storage, change func(envt)) error {
	return editEnvironment(ctx, storage, "environments/status", func(e envt) {
		e.Status.PendingRequests = nil
		change(e)
	})
}

// recordIn stores a record of the environment step by step until it is in the last of states, which come after Pending.
func recordIn(
	ctx context.Context, storage *registry.Storage, e envt, of v1alpha1.SyncType, batch string, states ...v1alpha1.SyncState,
) (*v1alpha1.SyncStatus, error) {
	record, err := syncstatus.New(syncstatus.Creation{
		Namespace: namespace, DetectedAt: noon, First: syncstatus.Step{To: v1alpha1.SyncStatePending, At: noon},
		Spec: v1alpha1.SyncStatusSpec{
			Type: of, Batch: batch, Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: e.Name, UID: e.UID},
		},
	})
	if err != nil {
		return nil, err
	}
	if of == v1alpha1.SyncTypeDependency {
		syncstatus.SetChanges(record, []v1alpha1.ResourceSummary{
			{Type: "ConfigMap", Namespace: "production", Name: "settings", ChangeType: v1alpha1.ChangeChanged},
		})
	} else {
		record.Status.Action = v1alpha1.SyncActionAll
	}
	for _, to := range append([]v1alpha1.SyncState{""}, states...) {
		if to != "" {
			if record, err = syncstatus.Move(record, stepTo(to)); err != nil {
				return nil, err
			}
		}
		if _, err := storage.Records.Write(ctx, record); err != nil {
			return nil, err
		}
		obj, err := storage.Endpoints["syncstatuses"].(rest.Getter).Get(ctx, record.Name, &metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		record.ResourceVersion, record.UID = obj.(*configbutler.SyncStatus).ResourceVersion, obj.(*configbutler.SyncStatus).UID
	}
	return record, nil
}

// stepTo is a step that nothing is missing from.
func stepTo(to v1alpha1.SyncState) syncstatus.Step {
	step := syncstatus.Step{To: to, At: noon}
	switch to {
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateConflicted:
		step.Failure = &syncstatus.Failure{Reason: "Refused", Message: "the quota is used up"}
	case v1alpha1.SyncStateDismissed:
		step.By = "joe"
	default:
	}
	return step
}

// mustRecord is recordIn in a test that needs the record.
func mustRecord(
	t *testing.T, storage *registry.Storage, e envt, of v1alpha1.SyncType, states ...v1alpha1.SyncState,
) *v1alpha1.SyncStatus {
	t.Helper()
	record, err := recordIn(in(t), storage, e, of, "b1", states...)
	if err != nil {
		t.Fatal(err)
	}
	return storedRecord(t, storage, record.Name)
}

// prompts has the environment prompt for a record about what workloads refer to, in the last of states.
func prompts(t *testing.T, storage *registry.Storage, states ...v1alpha1.SyncState) *v1alpha1.SyncStatus {
	t.Helper()
	record := mustRecord(t, storage, storedEnvironment(t, storage), v1alpha1.SyncTypeDependency, states...)
	if err := editEnvironment(in(t), storage, "environments/status", func(e envt) {
		e.Status.LatestDependencySync = record.Name
		e.Status.ChangedDependencies = []configbutler.DependencyCount{{Type: configbutler.CountedConfigMap, Count: 1}}
	}); err != nil {
		t.Fatal(err)
	}
	return record
}

// unchanged reports whether the environment is not what it was before.
func unchanged(t *testing.T, storage *registry.Storage, before envt) {
	t.Helper()
	if after := storedEnvironment(t, storage); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the environment has changed: %+v", after)
	}
}
