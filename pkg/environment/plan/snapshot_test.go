// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// content returns the objects of the target without server-side metadata.
func (s *fixture) content() map[string]any {
	content := map[string]any{}
	for key, live := range s.target.objects {
		o := live.DeepCopy()
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		content[key.String()] = o.Object
	}
	return content
}

// rollBack plans with the snapshot of a revision.
func (s *fixture) rollBack(to int64, applied map[plan.Key]*unstructured.Unstructured) {
	s.Revision, s.Snapshot = to, slices.Collect(maps.Values(applied))
}

// TestSnapshot restores a snapshot after the source has changed everything and deleted a referenced object.
func TestSnapshot(t *testing.T) {
	s := shop(t)
	s.Revision = 1
	applied, had := maps.Clone(s.Base), s.content()
	s.Revision++
	s.put(replaced(t, web, "web:1", "web:2", "app-config", "new-config", "replicas: 3", "replicas: 0"))
	s.put(replaced(t, database, "aHVudGVyMg==", "aHVudGVyMw=="))
	s.add(replaced(t, appConfig, "app-config", "new-config"))
	s.drop("CronJob", "report")
	s.drop("ConfigMap", "report-config")
	s.drop("ConfigMap", "app-config")
	s.drop("Ingress", "web")
	s.Environment.Spec.Patches = []v1alpha1.Patch{{
		Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchMerge, Patch: "{metadata: {labels: {mine: 'yes'}}}",
	}}
	s.sync()
	if cmp.Equal(had, s.content()) {
		t.Fatal("the source has changed nothing")
	}
	s.rollBack(1, applied)
	p := s.sync()
	if diff := cmp.Diff(had, s.content()); diff != "" {
		t.Errorf("target after the rollback (-want +got):\n%s", diff)
	}
	if len(p.Failures())+len(p.Conflicts) > 0 {
		t.Errorf("failures %v, conflicts %v", p.Failures(), p.Conflicts)
	}
	records := map[string]v1alpha1.EnvironmentDependencyRecord{}
	for _, record := range p.Index {
		records[record.Source.Name] = record
	}
	if r := records["app-config"]; !r.Missing || !slices.Equal(r.Keys, []string{"level"}) || r.Hash == "" {
		t.Errorf("record of an object deleted in the source = %+v", r)
	}
	if r := records["database"]; r.Missing || r.Hash == hashOf(t, replaced(t, database, "aHVudGVyMg==", "aHVudGVyMw==")) {
		t.Errorf("record of an object changed in the source = %+v", r)
	}
	if _, there := records["new-config"]; there {
		t.Error("unreferenced object has a record")
	}
}

// TestUnchangedSnapshot checks that objects that are unchanged in the source are recorded as up to date, so that they
// cause no prompt.
func TestUnchangedSnapshot(t *testing.T) {
	s := shop(t)
	s.Revision = 1
	s.rollBack(1, s.Base)
	for _, record := range s.sync().Index {
		if record.Source.Name == "app-config" && record.Hash != hashOf(t, object(t, appConfig)) {
			t.Errorf("record = %+v", record)
		}
	}
}

// TestPartOfSnapshot checks that a rollback of some workloads restores what they refer to, and nothing else.
func TestPartOfSnapshot(t *testing.T) {
	s := shop(t)
	s.Revision = 1
	applied := maps.Clone(s.Base)
	s.Revision++
	for _, o := range []*unstructured.Unstructured{
		replaced(t, web, "web:1", "web:2"), replaced(t, appConfig, "info", "debug"), replaced(t, report, "report:1", "report:2"),
		replaced(t, reportConfig, "sales", "board"),
	} {
		s.put(o)
	}
	s.sync()
	s.rollBack(1, applied)
	s.Only = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}
	var got []string
	for _, step := range s.sync().Steps {
		if step.Verb != plan.Leave {
			got = append(got, step.Key.String())
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap app-config", "Deployment web"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func hashOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	o.SetNamespace("production")
	hash, err := plan.Hash(planner.Hasher, o)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// TestRestoresFromBase deletes the target while the source lacks a referenced object.
func TestRestoresFromBase(t *testing.T) {
	for name, action := range map[string]v1alpha1.SyncAction{
		"all": v1alpha1.SyncActionAll, "the catalog": v1alpha1.SyncActionCatalog, "the cluster": v1alpha1.SyncActionCluster,
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, web), object(t, appConfig), object(t, database), object(t, pulling))
			s.sync()
			had := s.content()
			s.drop("ConfigMap", "app-config")
			s.drop("ServiceAccount", "default")
			s.target.objects = map[plan.Key]*unstructured.Unstructured{}
			s.Action = action
			p := s.sync()
			var failures []string
			for _, failure := range p.Failures() {
				failures = append(failures, failure.Name)
			}
			if !slices.Contains(failures, "app-config") {
				t.Errorf("failures %q", failures)
			}
			for key, was := range had {
				is, there := s.content()[key]
				if isWorkload := strings.HasPrefix(key, "Deployment"); isWorkload && action == v1alpha1.SyncActionCluster {
					continue
				}
				if diff := cmp.Diff(was, is); diff != "" || !there {
					t.Errorf("%s was not restored:\n%s", key, diff)
				}
			}
		})
	}
	t.Run("never applied", func(t *testing.T) {
		s := newFixture(t, object(t, web), object(t, database))
		if p := s.sync(); len(p.Missing) != 1 || len(s.target.objects) != 2 {
			t.Errorf("missing %v, %d objects", p.Missing, len(s.target.objects))
		}
	})
}
