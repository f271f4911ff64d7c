// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/diff"
)

// TestAdoption lets a Branch take over an object that a developer created with kubectl; later the catalog removes one of
// its fields.
func TestAdoption(t *testing.T) {
	theirs := func() *unstructured.Unstructured {
		own := object(t, web)
		own.SetNamespace("shop-alice")
		own.SetAnnotations(map[string]string{"hers": "yes"})
		return own
	}
	for name, write := range map[string]func(s *fixture){
		"kubectl create": func(s *fixture) { s.target.update("kubectl-create", theirs()) },
		"kubectl apply":  func(s *fixture) { s.target.update("kubectl-client-side-apply", theirs()) },
		"both": func(s *fixture) {
			s.target.update("kubectl-create", theirs())
			changed := theirs()
			changed.SetLabels(map[string]string{"hers": "yes"})
			s.target.update("kubectl-client-side-apply", changed)
		},
		"kubectl create, of nothing more": func(s *fixture) {
			own := theirs()
			own.SetAnnotations(nil)
			s.target.update("kubectl-create", own)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, web), object(t, appConfig), object(t, database))
			s.Environment.Spec.Type = v1alpha1.EnvironmentBranch
			s.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
			write(s)
			s.Force = true
			s.sync()
			s.Force = false
			key := plan.KeyOf(object(t, web))
			live := s.target.objects[key]
			if got := managersOf(live, "spec", "replicas"); !slices.Equal(got, []string{v1alpha1.FieldManager}) {
				t.Errorf("managers of an applied field = %v", got)
			}
			if got := managersOf(live, "metadata", "annotations", "hers"); live.GetAnnotations()["hers"] != "" &&
				!slices.Contains(got, "kubectl-create") &&
				!slices.Contains(got, "kubectl-client-side-apply") {
				t.Errorf("managers of another field = %v", got)
			}
			s.Revision++
			s.put(replaced(t, web, ", resources: {limits: {memory: 64Mi}}", ""))
			if p := s.sync(); len(p.Conflicts) > 0 {
				t.Errorf("conflicts = %v", p.Conflicts)
			}
			if _, there := container(t, s.target.objects[key])["resources"]; there {
				t.Error("field that the catalog has removed still exists")
			}
			if name != "kubectl create, of nothing more" && s.target.objects[key].GetAnnotations()["hers"] != "yes" {
				t.Error("field of the developer was removed")
			}
		})
	}
}

// managersOf returns the managers of a field.
func managersOf(live *unstructured.Unstructured, path ...any) []string {
	return diff.ManagersOf(live).Of(fieldpath.MakePathOrDie(path...))
}
