// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// deny removes the objects of the types from the source and denies the types.
func (s *fixture) deny(types ...v1alpha1.DependencyType) {
	s.Denied = plan.Denied{}
	for _, of := range types {
		s.Denied[of] = plan.Denial{Reason: v1alpha1.ReasonPermissionLost, Message: "eve may not"}
		s.Source = slices.DeleteFunc(s.Source, func(o *unstructured.Unstructured) bool { return o.GetKind() == string(of) })
	}
}

// TestDenied denies types that were copied before, while the source changes.
func TestDenied(t *testing.T) {
	const (
		revision     = " /metadata/labels/configbutler.ai~1revision"
		noConfigMap  = "Failed to sync ConfigMap 'app-config' from production - eve may not"
		noOther      = "Failed to sync ConfigMap 'report-config' from production - eve may not"
		noSecret     = "Failed to sync Secret 'database' from production - eve may not"
		noService    = "Failed to sync Service 'web' from production - eve may not"
		imageChanges = "update Deployment web: the catalog offers it" + revision + " /spec/template/spec/containers[name=web]/image"
	)
	types := []v1alpha1.DependencyType{v1alpha1.DependencyConfigMap, v1alpha1.DependencySecret, v1alpha1.DependencyService}
	for name, tt := range map[string]struct {
		denied []v1alpha1.DependencyType
		do     func(*fixture)
		want   []string
		fails  []string
	}{
		"Secrets stay, and the rest changes": {
			denied: types[1:2],
			do: func(s *fixture) {
				s.put(replaced(t, web, "web:1", "web:2"))
				s.put(replaced(t, appConfig, "info", "debug"))
			},
			want: []string{
				"update ConfigMap app-config: Deployment web refers to it /data/level" + revision,
				"leave Secret database: it is not read in the source, and something refers to it", imageChanges,
			},
			fails: []string{noSecret},
		},
		"everything stays": {
			denied: types, do: func(s *fixture) { s.put(replaced(t, web, "web:1", "web:2")) },
			want: []string{
				"leave ConfigMap app-config: what needs it is not known while Services of the source are not read",
				"leave ConfigMap report-config: what needs it is not known while Services of the source are not read",
				"leave Secret database: what needs it is not known while Services of the source are not read", imageChanges,
			},
			fails: []string{noConfigMap, noOther, noSecret, noService},
		},
		"by the index": {
			denied: types, do: func(s *fixture) { s.Action = v1alpha1.SyncActionCluster },
			fails: []string{noConfigMap, noOther, noSecret, noService},
		},
		"a Secret that is new": {
			denied: types[1:2], do: func(s *fixture) { s.put(replaced(t, web, "name: database", "name: vault")) },
			want: []string{
				"update Deployment web: the catalog offers it" + revision + " /spec/template/spec/initContainers[name=wait]/envFrom",
				"delete Secret database: nothing needs it any more",
			},
			fails: []string{"Failed to sync Secret 'vault' from production - eve may not"},
		},
		"a Service that nothing needs any more": {
			denied: types[2:], do: func(s *fixture) { s.drop("Deployment", "web") },
			want: []string{
				"leave ConfigMap app-config: what needs it is not known while Services of the source are not read",
				"leave Secret database: what needs it is not known while Services of the source are not read",
				"leave Service web: what needs it is not known while Services of the source are not read",
				"leave Ingress web: what needs it is not known while Services of the source are not read",
				"delete Deployment web: the catalog does not offer it",
			},
			fails: []string{"Failed to sync the Services of production - eve may not"},
		},
		"the target was deleted": {
			denied: types[1:2], do: func(s *fixture) { clear(s.target.objects) },
			want: []string{
				"create ConfigMap app-config: Deployment web refers to it", "create ConfigMap report-config: CronJob report refers to it",
				"create Secret database: it is not read in the source, and it is made again as it was",
				"create Service web: Deployment web refers to it",
				"create CronJob report: the catalog offers it", "create Deployment web: the catalog offers it",
				"create Ingress web: it leads to Service web",
			},
			fails: []string{noSecret},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			before := s.Index
			tt.do(s)
			s.deny(tt.denied...)
			p := s.sync()
			if diff := cmp.Diff(tt.want, lines(p)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			fails := []string{}
			for _, failure := range p.Failures() {
				fails = append(fails, failure.Message)
				if failure.Reason != v1alpha1.ReasonPermissionLost {
					t.Errorf("reason = %s", failure.Reason)
				}
			}
			slices.Sort(fails)
			if diff := cmp.Diff(tt.fails, fails); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			s.expectCopiesOf(before)
		})
	}
}

// expectCopiesOf checks that the records of denied objects are unchanged, and that new ones have no copy.
func (s *fixture) expectCopiesOf(before []v1alpha1.EnvironmentDependencyRecord) {
	s.t.Helper()
	had := map[string]v1alpha1.EnvironmentDependencyRecord{}
	for _, record := range before {
		had[string(record.Type)+record.Source.Name] = record
	}
	for _, record := range s.Index {
		was := had[string(record.Type)+record.Source.Name]
		if s.Denied[record.Type].Reason == "" {
			continue
		}
		if record.Hash != was.Hash || record.Missing != was.Missing || !slices.Equal(record.Keys, was.Keys) || record.SeenHash != was.SeenHash {
			s.t.Errorf("record = %+v, want %+v", record, was)
		}
	}
}

// TestNewEnvironmentGetsNothingDenied runs a first sync, and a second one when nothing is denied anymore.
func TestNewEnvironmentGetsNothingDenied(t *testing.T) {
	s := newFixture(t, object(t, web), object(t, appConfig))
	s.deny(v1alpha1.DependencySecret)
	p := s.sync()
	if len(p.Missing) != 1 || p.Missing[0].Name != "database" || len(s.target.objects) != 2 {
		t.Errorf("missing %v, objects of the target %q", p.Missing, slices.Collect(maps.Keys(s.target.objects)))
	}
	for _, record := range s.Index {
		if record.Type == v1alpha1.DependencySecret && (record.Hash != "" || record.Missing || len(record.Keys) > 0) {
			t.Errorf("record = %+v", record)
		}
	}
	s.Denied = nil
	s.add(object(t, database))
	want := []string{"create Secret database: Deployment web refers to it"}
	if diff := cmp.Diff(want, lines(s.sync())); diff != "" {
		t.Errorf("steps once nothing is denied (-want +got):\n%s", diff)
	}
}

// TestDeniedVersionsThatWereSeen checks that hashes of newer versions are kept, so that these are offered once they may be copied.
func TestDeniedVersionsThatWereSeen(t *testing.T) {
	for _, action := range []v1alpha1.SyncAction{v1alpha1.SyncActionAll, v1alpha1.SyncActionCluster} {
		s := shop(t)
		for i := range s.Index {
			s.Index[i].SeenHash = "newer"
		}
		s.Action = action
		s.deny(v1alpha1.DependencySecret)
		for _, record := range s.sync().Index {
			if kept := record.SeenHash == "newer"; kept != (record.Type == v1alpha1.DependencySecret) {
				t.Errorf("%s: seen hash of %s %s = %q", action, record.Type, record.Source.Name, record.SeenHash)
			}
		}
	}
}

// TestSnapshotIgnoresDenied restores a snapshot.
func TestSnapshotIgnoresDenied(t *testing.T) {
	s := shop(t)
	s.Snapshot = slices.Collect(maps.Values(s.Base))
	s.put(replaced(t, database, "aHVudGVyMg==", "aHVudGVyMw=="))
	s.sync()
	clear(s.target.objects)
	s.deny(v1alpha1.DependencyConfigMap, v1alpha1.DependencySecret, v1alpha1.DependencyService)
	p := s.sync()
	if len(p.Failures()) > 0 || len(s.target.objects) != len(s.Snapshot) {
		t.Errorf("failures %v, %d objects of %d", p.Failures(), len(s.target.objects), len(s.Snapshot))
	}
	if password, _, _ := unstructured.NestedString(s.target.objects[plan.KeyOf(object(t, database))].Object, "data",
		"password"); password != "aHVudGVyMg==" {
		t.Errorf("password = %s", password)
	}
}

func TestOptionalAndDenied(t *testing.T) {
	s := newFixture(t, replaced(t, web, "name: database", "name: database, optional: true"), object(t, appConfig))
	s.deny(v1alpha1.DependencySecret)
	p := s.sync()
	want := []string{"Secret database is not copied from production, if it is there: eve may not"}
	if diff := cmp.Diff(want, p.Warnings); diff != "" || len(p.Failures()) > 0 {
		t.Errorf("failures %v, reported (-want +got):\n%s", p.Failures(), diff)
	}
}

// TestLastAppliedServices checks that restored Services keep their selectors.
func TestLastAppliedServices(t *testing.T) {
	const mark = "argocd.argoproj.io/instance"
	s := newFixture(t, replaced(t, web, "labels: {app: web}", "labels: {app: web, "+mark+": shop}"),
		object(t, appConfig), object(t, database), replaced(t, service, "selector: {app: web}", "selector: {"+mark+": shop}"))
	s.Environment.Spec.Patches = []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Service"}, Type: v1alpha1.PatchJSON6902,
		Patch: `[{"op": "add", "path": "/spec/ports/-", "value": {"name": "admin", "port": 81, "targetPort": 81, "protocol": "TCP"}},
			{"op": "add", "path": "/spec/ports/0/name", "value": "web"}]`,
	}}
	s.sync()
	s.deny(v1alpha1.DependencyService)
	if p := s.sync(); len(lines(p)) > 0 || len(p.Failures()) != 1 {
		t.Errorf("steps %q, failures %v", lines(p), p.Failures())
	}
}
