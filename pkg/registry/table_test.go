// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

var updateGolden = flag.Bool("update", false, "write the tables to testdata instead of comparing them")

// before is a time before noon.
func before(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func named(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: before(age)}
}

func ready(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{
		{Type: "AccessDenied", Status: metav1.ConditionFalse, Reason: "AccessGranted"},
		{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message},
	}
}

// lists have a row for each way in which a cell can look.
func lists() map[string]runtime.Object {
	commit := &configbutler.CommitSummary{
		SHA: "4f2c9e1d0b7a6655443322110099887766554433", Time: before(42 * time.Second), Message: "[UPDATE] 2 objects",
	}
	seeded := before(3 * time.Hour)
	return map[string]runtime.Object{
		"gitrepoconfigs": &configbutler.GitRepoConfigList{Items: []configbutler.GitRepoConfig{
			{ObjectMeta: named("new", 5*time.Second), Spec: configbutler.GitRepoConfigSpec{RepoURL: "https://git.example.com/shop.git"}},
			{
				ObjectMeta: named("shop", 90*time.Minute),
				Spec: configbutler.GitRepoConfigSpec{
					RepoURL: "ssh://git@git.example.com/shop.git", AllowedBranches: []string{"main", "release-*"},
				},
				Status: configbutler.GitRepoConfigStatus{
					Conditions: ready(metav1.ConditionTrue, "Succeeded", "The repository can be read and written"),
				},
			},
		}},
		"gitdestinations": &configbutler.GitDestinationList{Items: []configbutler.GitDestination{
			{
				ObjectMeta: named("root", 26*time.Hour),
				Spec: configbutler.GitDestinationSpec{
					RepoRef: configbutler.ObjectReference{Name: "shop"}, Branch: "main", Secrets: "Encrypt", Prune: "Always",
				},
			},
			{
				ObjectMeta: named("elsewhere", 26*time.Hour),
				Spec: configbutler.GitDestinationSpec{
					RepoRef: configbutler.ObjectReference{Namespace: "platform", Name: "shop"},
					Branch:  "main", BaseFolder: "clusters/one", Secrets: "Omit", Prune: "Never",
				},
				Status: configbutler.GitDestinationState{
					Conditions: ready(metav1.ConditionFalse, "AccessNotGranted", "platform/shop does not admit the namespace shop"),
				},
			},
			{
				ObjectMeta: named("with-keys", time.Hour),
				Spec: configbutler.GitDestinationSpec{
					RepoRef: configbutler.ObjectReference{Name: "shop"}, Branch: "main", Secrets: "Encrypt", Prune: "Always",
				},
				Status: configbutler.GitDestinationState{Conditions: []metav1.Condition{{Type: "SecretsEncrypted", Status: metav1.ConditionTrue}}},
			},
			{
				ObjectMeta: named("without-keys", time.Hour),
				Spec: configbutler.GitDestinationSpec{
					RepoRef: configbutler.ObjectReference{Name: "shop"}, Branch: "main", Secrets: "Encrypt", Prune: "Always",
				},
				Status: configbutler.GitDestinationState{Conditions: []metav1.Condition{{Type: "SecretsEncrypted", Status: metav1.ConditionFalse}}},
			},
		}},
		"gitdestinationstatuses": &configbutler.GitDestinationStatusList{Items: []configbutler.GitDestinationStatus{
			{ObjectMeta: named("new", time.Second), Status: configbutler.GitDestinationRecord{Branch: "main", State: "Comparing with the cluster"}},
			{
				ObjectMeta: named("proposing", time.Hour),
				Status: configbutler.GitDestinationRecord{
					Branch: "main", State: "12 changes proposed in #41",
					Proposal: &configbutler.Proposal{
						Number: 41, State: configbutler.ProposalOpen, Changes: 12, OpenTime: metav1.NewTime(noon.Add(-2 * time.Hour)),
					},
				},
			},
			{
				ObjectMeta: named("busy", time.Hour),
				Status: configbutler.GitDestinationRecord{
					Branch: "main", Folder: "clusters/one", LastCommit: commit, PendingChanges: 2, Objects: 1200, Files: 1199, LastSeedTime: &seeded,
					PushRetries: 3, State: "Not mirrored: the remote refused the push", LastError: "the remote refused the push",
				},
			},
		}},
		"changes": &configbutler.ChangeList{Items: []configbutler.Change{
			{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: configbutler.ChangeSpec{
				Object:    configbutler.ChangedObject{Resource: "deployments", Name: "api"},
				Operation: configbutler.ChangeCompared, Time: metav1.NewMicroTime(noon.Add(-time.Second)), FieldManager: "helm",
			}},
			{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: configbutler.ChangeSpec{
				Object: configbutler.ChangedObject{Kind: "Deployment", Resource: "deployments", Name: "web"}, Operation: configbutler.ChangeUpdate,
				Time: metav1.NewMicroTime(noon.Add(-time.Hour)), FieldManager: "kubectl",
				Author:  &configbutler.ChangeAuthor{Username: "jane@example.com", Signal: "Audit"},
				Commits: []configbutler.ChangeCommit{{SHA: "8548a580c1e5f6b7"}, {SHA: "18a23d8"}},
				Fields:  []string{"/spec/template/spec/containers[name=web]/image", "/spec/replicas"}, MoreFields: 3, Bypass: true,
				Reason: "rollback", ManagedBy: &configbutler.ChangeManager{Tool: configbutler.ManagedByFlux, Kind: "Kustomization", Name: "shop"},
			}},
			{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, Spec: configbutler.ChangeSpec{
				Object: configbutler.ChangedObject{APIVersion: "v1", Kind: "Secret", Resource: "secrets", Name: "db"}, Operation: configbutler.ChangeUpdate,
				Time: metav1.NewMicroTime(noon.Add(-2 * time.Hour)), Fields: []string{"/data/password"},
				ManagedBy: &configbutler.ChangeManager{Tool: configbutler.ManagedByHelm, Name: "db"},
			}},
		}},
		"watchrules": &configbutler.WatchRuleList{Items: []configbutler.WatchRule{
			{ObjectMeta: named("new", time.Second), Spec: configbutler.WatchRuleSpec{DestinationRef: configbutler.ObjectReference{Name: "dest"}}},
		}},
		"clusterwatchrules": &configbutler.ClusterWatchRuleList{Items: []configbutler.ClusterWatchRule{
			{
				ObjectMeta: named("crds", 400*24*time.Hour),
				Spec: configbutler.ClusterWatchRuleSpec{
					DestinationRef: configbutler.NamespacedObjectReference{Namespace: "platform", Name: "dest"},
				},
				Status: configbutler.WatchRuleStatus{
					Conditions: ready(metav1.ConditionTrue, "Succeeded", "Following 1 type"),
					MatchedResourceTypes: []configbutler.ResourceType{
						{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
					},
				},
			},
		}},
	}
}

func TestTables(t *testing.T) {
	storage := newStorage(t)
	rows := lists()
	maps.Copy(rows, catalogLists())
	maps.Copy(rows, environmentLists())
	maps.Copy(rows, pipelineLists())
	maps.Copy(rows, notificationLists())
	for resource, list := range rows {
		t.Run(resource, func(t *testing.T) {
			convertor := storage.Endpoints[resource].(rest.TableConvertor)
			table, err := convertor.ConvertToTable(t.Context(), list, nil)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, resource, "plain:\n"+render(table, 0)+"\nwide:\n"+render(table, 1))
		})
	}
}

// What a cell shows was chosen by users and remotes.
func TestTablesHideNothing(t *testing.T) {
	convertor := newStorage(t).Endpoints["gitrepoconfigs"].(rest.TableConvertor)
	table, err := convertor.ConvertToTable(t.Context(), &configbutler.GitRepoConfig{
		ObjectMeta: named("shop", time.Hour),
		Spec:       configbutler.GitRepoConfigSpec{AllowedBranches: []string{"ma\u202ein"}},
		Status:     configbutler.GitRepoConfigStatus{Conditions: ready(metav1.ConditionFalse, "PushRejected", "no\u200b 日本\nsecond line")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cells := fmt.Sprint(table.Rows[0].Cells...)
	for _, want := range []string{`ma\u202ein`, `no\u200b 日本` + "\nsecond line"} {
		if !strings.Contains(cells, want) {
			t.Errorf("cells %q, want %q in them", cells, want)
		}
	}
}

func TestTableOfAListContinuesWhereItEnds(t *testing.T) {
	list := &configbutler.WatchRuleList{ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "token"}}
	convertor := newStorage(t).Endpoints["watchrules"].(rest.TableConvertor)
	table, err := convertor.ConvertToTable(t.Context(), list, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	if table.ResourceVersion != "12" || table.Continue != "token" {
		t.Errorf("list metadata = %+v, want that of the list", table.ListMeta)
	}
	if len(table.ColumnDefinitions) != 0 {
		t.Error("headers although none were asked for")
	}
	single, err := convertor.ConvertToTable(t.Context(),
		&configbutler.WatchRule{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "3"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if single.ResourceVersion != "3" || len(single.Rows) != 1 {
		t.Errorf("table of one object = %+v", single)
	}
}

// render prints a table as kubectl does, with the columns up to a priority.
func render(table *metav1.Table, priority int32) string {
	var out bytes.Buffer
	writer := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
	var headers []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority <= priority {
			headers = append(headers, strings.ToUpper(column.Name))
		}
	}
	lines := []string{strings.Join(headers, "\t")}
	for _, row := range table.Rows {
		var cells []string
		for i, cell := range row.Cells {
			if table.ColumnDefinitions[i].Priority <= priority {
				cells = append(cells, fmt.Sprint(cell))
			}
		}
		lines = append(lines, strings.Join(cells, "\t"))
	}
	// Writing to memory cannot fail.
	_, _ = fmt.Fprintln(writer, strings.Join(lines, "\n"))
	_ = writer.Flush()
	return out.String()
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *updateGolden {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update writes it:\n%s", file, diff)
	}
}
