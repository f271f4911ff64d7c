// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry"
)

// record is what the replica that leads knows about the destination.
func syncRecord(syncs ...configbutler.SyncProgress) *configbutler.GitDestinationStatus {
	return &configbutler.GitDestinationStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "dest"},
		Status: configbutler.GitDestinationRecord{
			Syncs: syncs,
			Watches: []configbutler.ResourceTypeWatch{
				{ResourceType: configbutler.ResourceType{Version: "v1", Resource: "configmaps"}, State: configbutler.WatchStateWatching},
				{
					ResourceType: configbutler.ResourceType{Group: "apps", Version: "v1", Resource: "deployments"}, State: configbutler.WatchStateWatching,
				},
			},
		},
	}
}

func syncOf(
	ctx context.Context, storage *registry.Storage, spec configbutler.MirrorSyncSpec, dryRun ...string,
) (*configbutler.MirrorSync, error) {
	endpoint := storage.Endpoints["gitdestinations/sync"].(rest.NamedCreater)
	answer, err := endpoint.Create(ctx, "dest", &configbutler.MirrorSync{Spec: spec}, rest.ValidateAllObjectFunc,
		&metav1.CreateOptions{DryRun: dryRun})
	if err != nil {
		return nil, err
	}
	return answer.(*configbutler.MirrorSync), nil
}

func pending(t *testing.T, storage *registry.Storage) []configbutler.PendingSync {
	t.Helper()
	obj, err := storage.Endpoints["gitdestinations"].(rest.Getter).Get(in(t), "dest", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*configbutler.GitDestination).Status.PendingSyncs
}

func TestSyncIsRecordedAndAnswered(t *testing.T) {
	storage := newStorage(t)
	create(t, storage, "gitdestinations", destination())
	if _, err := storage.Records.Write(in(t), syncRecord()); err != nil {
		t.Fatal(err)
	}
	leads := make(chan error, 1)
	go func() { leads <- lead(in(t), storage) }()
	answer, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{Types: []string{"deployments", "configmaps"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-leads; err != nil {
		t.Fatal(err)
	}
	want := "Compared 2 of 2 types: 3 files written, 1 removed"
	if !answer.Status.Accepted || answer.Status.Message != want || answer.Status.Found == nil || answer.Status.Found.FilesWritten != 3 {
		t.Errorf("answer %+v, want %s", answer.Status, want)
	}
	if answer.Name != "dest" || answer.Namespace != namespace && answer.Namespace != "" {
		t.Errorf("answer for %s/%s", answer.Namespace, answer.Name)
	}
}

// lead carries out the first request that is made, as the leading replica does.
func lead(ctx context.Context, storage *registry.Storage) error {
	watched, err := storage.Endpoints["gitdestinations"].(rest.Watcher).Watch(ctx, &internalversion.ListOptions{})
	if err != nil {
		return err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		asked := event.Object.(*configbutler.GitDestination).Status.PendingSyncs
		if len(asked) == 0 {
			continue
		}
		now := metav1.NewTime(noon)
		progress := configbutler.SyncProgress{ID: asked[0].ID, Types: 2}
		if _, err := storage.Records.Write(ctx, syncRecord(progress)); err != nil {
			return err
		}
		progress.Compared, progress.FilesWritten, progress.FilesRemoved, progress.CompletionTime = 2, 3, 1, &now
		_, err := storage.Records.Write(ctx, syncRecord(progress))
		return err
	}
	return ctx.Err()
}

func TestSyncDoesNotWaitForLong(t *testing.T) {
	storage := newStorage(t, impatient) // there is no leader
	create(t, storage, "gitdestinations", destination())
	answer, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	asked := pending(t, storage)
	if len(asked) != 1 || !asked[0].Full || !asked[0].Time.Time.Equal(noon) {
		t.Fatalf("recorded %+v", asked)
	}
	if !answer.Status.Accepted || !strings.Contains(answer.Status.Message, asked[0].ID) || answer.Status.Found != nil {
		t.Errorf("answer %+v", answer.Status)
	}
}

func TestSyncRefuses(t *testing.T) {
	tests := map[string]struct {
		spec    configbutler.MirrorSyncSpec
		prepare func(*configbutler.GitDestination)
		// wants are parts of the error
		wants []string
	}{
		"a type that no rule selects": {
			spec:  configbutler.MirrorSyncSpec{Types: []string{"configmaps", "ingresses"}},
			wants: []string{`spec.types[1]: Unsupported value: "ingresses"`, `"configmaps", "deployments.apps"`},
		},
		"a name that is none": {
			spec:  configbutler.MirrorSyncSpec{Types: []string{"Config/Maps"}},
			wants: []string{"spec.types[0]", "plural in lower case such as configmaps"},
		},
		"a name twice": {
			spec: configbutler.MirrorSyncSpec{Types: []string{"configmaps", "configmaps"}}, wants: []string{"spec.types[1]: Duplicate value"},
		},
		"full and types": {
			spec: configbutler.MirrorSyncSpec{Types: []string{"configmaps"}, Full: true}, wants: []string{"spec.types: Forbidden", "full"},
		},
		"a destination that is suspended": {
			prepare: func(d *configbutler.GitDestination) { d.Spec.Suspend = true }, wants: []string{"spec.suspend is set"},
		},
	}
	for name, tt := range tests {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			t.Run(name, func(t *testing.T) {
				storage, d := newStorage(t), destination()
				if tt.prepare != nil {
					tt.prepare(d)
				}
				create(t, storage, "gitdestinations", d)
				if _, err := storage.Records.Write(in(t), syncRecord()); err != nil {
					t.Fatal(err)
				}
				_, err := syncOf(in(t), storage, tt.spec, dryRun...)
				if err == nil {
					t.Fatal("accepted")
				}
				for _, want := range tt.wants {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is not in: %v", want, err)
					}
				}
				if asked := pending(t, storage); len(asked) != 0 {
					t.Errorf("recorded %+v", asked)
				}
			})
		}
	}
}

func TestSyncOfNothing(t *testing.T) {
	storage := newStorage(t)
	if _, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{}); !apierrors.IsNotFound(err) {
		t.Errorf("without a destination: %v", err)
	}
	create(t, storage, "gitdestinations", destination())
	_, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{Types: []string{"configmaps"}})
	if err == nil || !strings.Contains(err.Error(), "no rule selects any type for this destination yet") {
		t.Errorf("without a rule: %v", err)
	}
}

func TestSyncDryRun(t *testing.T) {
	storage := newStorage(t)
	create(t, storage, "gitdestinations", destination())
	answer, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{}, metav1.DryRunAll)
	if err != nil {
		t.Fatal(err)
	}
	if !answer.Status.Accepted || answer.Status.Message != "Would compare all types (dry run)" {
		t.Errorf("answer %+v", answer.Status)
	}
	if asked := pending(t, storage); len(asked) != 0 {
		t.Errorf("recorded %+v", asked)
	}
}

func TestSyncsDoNotPileUp(t *testing.T) {
	storage := newStorage(t, impatient)
	create(t, storage, "gitdestinations", destination())
	for range 16 {
		if _, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := syncOf(in(t), storage, configbutler.MirrorSyncSpec{}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a request too many: %v", err)
	}
}

func TestSyncIsJudgedByAdmission(t *testing.T) {
	storage := newStorage(t)
	create(t, storage, "gitdestinations", destination())
	endpoint := storage.Endpoints["gitdestinations/sync"].(rest.NamedCreater)
	refuse := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(configbutler.Resource("gitdestinations"), "dest", nil)
	}
	if _, err := endpoint.Create(in(t), "dest", &configbutler.MirrorSync{}, refuse, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("admission refuses: %v", err)
	}
	if asked := pending(t, storage); len(asked) != 0 {
		t.Errorf("recorded %+v", asked)
	}
}
