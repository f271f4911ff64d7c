// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// hasher is a hasher without a key.
type hasher struct{}

func (hasher) Sum(purpose string, parts ...[]byte) string {
	sum := sha256.Sum256([]byte(purpose + string(slices.Concat(parts...))))
	return hex.EncodeToString(sum[:])
}

// offering is a fixture with an environment of a catalog.
type offering struct {
	*fixture
	plan.Input
}

func newOffering(t *testing.T, namespace string) *offering {
	t.Helper()
	o := &offering{fixture: newTarget(t, namespace), Input: plan.Input{
		Environment: environmentIn(namespace, "alice"), Revision: 1, SourceNamespace: "production", Action: v1alpha1.SyncActionAll,
		Base: map[plan.Key]*unstructured.Unstructured{},
	}}
	o.Environment.Spec.CatalogRef.Name = "shop"
	return o
}

// sync applies the plan for these workloads and returns the written steps.
func (o *offering) sync(workloads ...string) []string {
	o.Helper()
	o.Workloads, o.Live = nil, nil
	for _, text := range workloads {
		offered := o.object(text)
		if live := o.live(offered); live != nil {
			o.Live = append(o.Live, live)
		}
		offered.SetNamespace(o.SourceNamespace)
		o.Workloads = append(o.Workloads, offered)
	}
	planner := plan.Planner{Schemas: diff.NewSchemas(nil, clock.RealClock{}), Hasher: hasher{}, Marks: objectcopy.DefaultMarks()}
	planned, err := planner.Plan(o.Context(), o.Input)
	if err != nil || len(planned.Failures())+len(planned.Conflicts) > 0 {
		o.Fatalf("%v: %v, %v", err, planned.Failures(), planned.Conflicts)
	}
	var steps []apply.Step
	var written []string
	for _, step := range planned.Steps {
		if o.Base[step.Key] = step.Desired; step.Verb != plan.Leave {
			written = append(written, step.String())
			steps = append(steps, apply.Step{
				Verb: apply.Verb(step.Verb), Live: step.Live, Removal: step.Removal, Apply: step.Apply, After: step.After,
			})
		}
	}
	o.mustApply(steps...)
	return written
}

const migration = `
apiVersion: batch/v1
kind: Job
metadata: {name: migration, namespace: TARGET}
spec:
  parallelism: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migration, image: "migration:1"}]
`

// TestJobsAreReplaced changes an immutable field of a Job.
func TestJobsAreReplaced(t *testing.T) {
	o := newOffering(t, "jobs")
	job := o.object(migration)
	o.sync(migration)
	first := o.live(job)
	o.sync(strings.Replace(migration, "parallelism: 1", "parallelism: 2", 1))
	second := o.live(job)
	if second.GetUID() != first.GetUID() || text(second, "spec", "parallelism") != "2" {
		t.Errorf("Job was replaced for a mutable field, or not changed: %v", second.Object["spec"])
	}
	next := strings.Replace(migration, "migration:1", "migration:2", 1)
	if got := o.sync(next); len(got) != 1 || !strings.HasPrefix(got[0], "update Job migration: ") {
		t.Errorf("written steps = %q", got)
	}
	third := o.live(job)
	containers, _, _ := unstructured.NestedSlice(third.Object, "spec", "template", "spec", "containers")
	if third.GetUID() == first.GetUID() || containers[0].(map[string]any)["image"] != "migration:2" {
		t.Errorf("Job spec = %v", third.Object["spec"])
	}
	checkManager(t, third)
	if got := o.sync(next); len(got) > 0 {
		t.Errorf("second sync wrote %q", got)
	}
}

// TestTakeoverFromKubectl has a Branch take over a Deployment that kubectl has created, and then removes a field from the catalog.
func TestTakeoverFromKubectl(t *testing.T) {
	for _, client := range []string{"kubectl-create", "kubectl-client-side-apply"} {
		t.Run(client, func(t *testing.T) {
			o := newOffering(t, client)
			o.Environment.Spec.Type = v1alpha1.EnvironmentBranch
			o.Environment.Spec.BranchWorkloads = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
			offered := workload("", ", env: [{name: LEVEL, value: info}, {name: MODE, value: live}]")
			offered = strings.Replace(offered, "serviceAccountName: web, ", "", 1)
			hers := o.object(offered)
			hers.SetAnnotations(map[string]string{"hers": "yes"})
			if _, err := o.resource(hers).Create(t.Context(), hers, metav1.CreateOptions{FieldManager: client}); err != nil {
				t.Fatal(err)
			}
			o.Force = true
			o.sync(offered)
			o.Force = false
			live := o.live(hers)
			owners := func(path ...any) []string { return diff.ManagersOf(live).Of(fieldpath.MakePathOrDie(path...)) }
			if got := owners("spec", "selector"); !slices.Equal(got, []string{manager}) {
				t.Errorf("managers of an applied field = %q", got)
			}
			if got := owners("metadata", "annotations", "hers"); !slices.Equal(got, []string{client}) {
				t.Errorf("managers of another field = %q", got)
			}
			o.sync(strings.Replace(offered, ", {name: MODE, value: live}", "", 1))
			live = o.live(hers)
			containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
			if env := containers[0].(map[string]any)["env"].([]any); len(env) != 1 || live.GetAnnotations()["hers"] != "yes" {
				t.Errorf("env = %v, annotations = %v", env, live.GetAnnotations())
			}
		})
	}
}
