// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

func TestEveryKindIsServed(t *testing.T) {
	storage := newStorage(t)
	want := []string{
		"appcatalogs", "appcatalogs/rollback", "appcatalogs/status", "appcatalogs/sync",
		"catalogworkloads",
		"changes", "changes/diff",
		"clusterwatchrules", "clusterwatchrules/status",
		"environmentdependencies",
		"environments", "environments/diff", "environments/dismiss", "environments/rediscover", "environments/resolve", "environments/rollback",
		"environments/secretdiff", "environments/status", "environments/sync", "environments/undismiss",
		"gitdestinations", "gitdestinations/objects", "gitdestinations/status", "gitdestinations/sync",
		"gitdestinationstatuses",
		"gitrepoconfigs", "gitrepoconfigs/status",
		"notificationsinks", "notificationsinks/status", "notificationsinks/test",
		"syncpipelines", "syncpipelines/status", "syncpipelines/sync",
		"syncpolicies", "syncpolicies/status",
		"syncstatuses", "syncstatuses/dismiss", "syncstatuses/retry",
		"watchrules", "watchrules/status",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(storage.Endpoints))); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
	shortNames := map[string]string{
		"gitrepoconfigs": "grc", "gitdestinations": "gd", "watchrules": "wr", "clusterwatchrules": "cwr", "gitdestinationstatuses": "gds",
		"appcatalogs": "cat", "catalogworkloads": "cw", "syncstatuses": "ss", "syncpolicies": "syncpol",
		"syncpipelines": "pipe", "notificationsinks": "sink",
		"environments": "envt", "environmentdependencies": "envdep",
	}
	clusterScoped := []string{"clusterwatchrules", "syncpipelines", "syncpolicies"}
	for resource, short := range shortNames {
		endpoint := storage.Endpoints[resource]
		if got := endpoint.(rest.ShortNamesProvider).ShortNames(); !slices.Equal(got, []string{short}) {
			t.Errorf("short names of %s = %v, want %s", resource, got, short)
		}
		if got := endpoint.(rest.CategoriesProvider).Categories(); !slices.Equal(got, []string{"slipstream"}) {
			t.Errorf("categories of %s = %v, want slipstream", resource, got)
		}
		if got, want := endpoint.(rest.Scoper).NamespaceScoped(), !slices.Contains(clusterScoped, resource); got != want {
			t.Errorf("%s is namespaced: %v, want %v", resource, got, want)
		}
		singular := endpoint.(rest.SingularNameProvider).GetSingularName()
		if !slices.Contains([]string{singular + "s", singular + "es", strings.TrimSuffix(singular, "y") + "ies"}, resource) {
			t.Errorf("singular of %s = %s", resource, singular)
		}
	}
}

func TestRecordsCanBeReadOrDeletedOnly(t *testing.T) {
	storage := newStorage(t)
	for _, record := range []string{"gitdestinationstatuses", "catalogworkloads", "environmentdependencies", "syncstatuses", "changes"} {
		endpoint := storage.Endpoints[record]
		for verb, ok := range map[string]bool{
			"create": implements[creator](endpoint),
			"update": implements[rest.Updater](endpoint),
			"patch":  implements[rest.Patcher](endpoint),
			// The cluster would delete Changes with their namespace.
			"delete":           record == "changes" && implements[rest.GracefulDeleter](endpoint),
			"deletecollection": record == "changes" && implements[rest.CollectionDeleter](endpoint),
		} {
			if ok {
				t.Errorf("%s can be requested for %s", verb, record)
			}
		}
		for verb, ok := range map[string]bool{
			"get":              implements[rest.Getter](endpoint),
			"list":             implements[rest.Lister](endpoint),
			"watch":            implements[rest.Watcher](endpoint),
			"delete":           record == "changes" || implements[rest.GracefulDeleter](endpoint),
			"deletecollection": record == "changes" || implements[rest.CollectionDeleter](endpoint),
			"waiting":          implements[rest.StorageWithReadiness](endpoint),
		} {
			if !ok {
				t.Errorf("%s cannot be requested for %s", verb, record)
			}
		}
	}
}

func implements[I any](endpoint rest.Storage) bool {
	_, ok := endpoint.(I)
	return ok
}

func TestSpecAndStatusChangeApart(t *testing.T) {
	storage := newStorage(t)
	created := create(t, storage, "gitdestinations", destination()).(*configbutler.GitDestination)
	if created.Generation != 1 || created.Status.ObservedGeneration != 0 {
		t.Fatalf("created with generation %d and a status of %d, want 1 and none", created.Generation, created.Status.ObservedGeneration)
	}

	statusChange := created.DeepCopy()
	statusChange.Status.ObservedGeneration = 1
	statusChange.Spec.Branch = "other"
	statusChange.Labels = map[string]string{"a": "b"}
	statusChange.Finalizers = []string{"example.com/finalizer"}
	withStatus, err := update(t, storage, "gitdestinations/status", statusChange)
	if err != nil {
		t.Fatal(err)
	}
	if withStatus.Status.ObservedGeneration != 1 {
		t.Error("the status was not stored")
	}
	if withStatus.Spec.Branch != "main" || withStatus.Labels != nil || withStatus.Finalizers != nil || withStatus.Generation != 1 {
		t.Errorf("the status endpoint changed more than the status: %+v", withStatus)
	}

	specChange := withStatus.DeepCopy()
	specChange.Spec.Suspend = true
	specChange.Status.ObservedGeneration = 5
	withSpec, err := update(t, storage, "gitdestinations", specChange)
	if err != nil {
		t.Fatal(err)
	}
	if withSpec.Status.ObservedGeneration != 1 {
		t.Error("the main endpoint changed the status")
	}
	if withSpec.Generation != 2 || !withSpec.Spec.Suspend {
		t.Errorf("generation = %d, suspend = %v after a change of the spec, want 2 and true", withSpec.Generation, withSpec.Spec.Suspend)
	}

	labelled := withSpec.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	withLabels, err := update(t, storage, "gitdestinations", labelled)
	if err != nil {
		t.Fatal(err)
	}
	if withLabels.Generation != 2 || withLabels.Labels["a"] != "b" {
		t.Errorf("generation = %d, labels = %v after a change of labels, want 2 and the label", withLabels.Generation, withLabels.Labels)
	}
}

func TestServerSideApplyLeavesTheOtherHalfAlone(t *testing.T) {
	storage := newStorage(t)
	tests := []struct{ endpoint, ignores string }{
		{"gitdestinations", ".status"},
		{"gitdestinations/status", ".spec .metadata.annotations .metadata.finalizers .metadata.labels .metadata.ownerReferences"},
	}
	for _, tt := range tests {
		fields := storage.Endpoints[tt.endpoint].(rest.ResetFieldsStrategy).GetResetFields()["configbutler.ai/v1alpha1"]
		got := strings.Fields(strings.ReplaceAll(fields.String(), "\n", " "))
		want := strings.Fields(tt.ignores)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fields that %s ignores (-want +got):\n%s", tt.endpoint, diff)
		}
	}
}

func TestInvalidObjectsAreRefused(t *testing.T) {
	storage := newStorage(t)
	bad := destination()
	bad.Spec.BaseFolder = "../elsewhere"
	_, err := storage.Endpoints["gitdestinations"].(creator).Create(in(t), bad, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "spec.baseFolder") {
		t.Errorf("error = %v, want one about spec.baseFolder", err)
	}
	good := create(t, storage, "gitdestinations", destination()).(*configbutler.GitDestination)
	good.Spec.BaseFolder = "/absolute"
	if _, err := update(t, storage, "gitdestinations", good); err == nil || !strings.Contains(err.Error(), "spec.baseFolder") {
		t.Errorf("error = %v, want one about spec.baseFolder", err)
	}
}
