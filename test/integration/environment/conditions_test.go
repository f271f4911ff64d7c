// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/environment/apply"
	kubediff "github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// TestConcurrentChanges changes objects after steps were planned.
func TestConcurrentChanges(t *testing.T) {
	s := newTarget(t, "races")
	for name, tt := range map[string]struct {
		meanwhile func(live *unstructured.Unstructured)
		// want is the message for an update and for a deletion.
		want string
	}{
		"replaced": {func(live *unstructured.Unstructured) {
			s.delete(live)
			s.put(settings(live.GetName(), "theirs"))
		}, "has been replaced by another one of its name meanwhile"},
		"changed": {func(live *unstructured.Unstructured) {
			s.putAs("alice", settings(live.GetName(), "theirs"))
		}, "has been changed meanwhile"},
		"labelled": {func(live *unstructured.Unstructured) {
			s.putAs("alice", strings.Replace(settings(live.GetName(), "ours"), "metadata: {", "metadata: {labels: {x: z}, ", 1))
		}, "has been changed meanwhile"},
	} {
		for _, verb := range []apply.Verb{apply.Update, apply.Delete} {
			t.Run(name+" "+string(verb), func(t *testing.T) {
				object := s.object(settings(name+"-"+string(verb), "ours"))
				live := s.mustApply(create(object))[0]
				tt.meanwhile(live)
				theirs := s.live(live)
				step := remove(live)
				if verb == apply.Update {
					step = update(live, s.object(settings(live.GetName(), "new")))
				}
				if diff := cmp.Diff([]string{"ConfigMap " + live.GetName() + " " + tt.want}, s.expectRefused(step)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(theirs, s.live(live)); diff != "" {
					t.Errorf("object was changed:\n%s", diff)
				}
			})
		}
	}
	t.Run("deleted", func(t *testing.T) {
		live := s.mustApply(create(s.object(settings("deleted", "ours"))))[0]
		s.delete(live)
		got := s.expectRefused(update(live, s.object(settings("deleted", "new"))))
		if diff := cmp.Diff([]string{"ConfigMap deleted has been deleted meanwhile"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.mustApply(remove(live))
	})
}

// TestInterruptedRuns cancels runs after each of their writes, and applies the remaining steps.
func TestInterruptedRuns(t *testing.T) {
	for last := 1; last <= 4; last++ {
		t.Run(strconv.Itoa(last), func(t *testing.T) {
			s := newTarget(t, "interrupted-"+strconv.Itoa(last))
			fixed := strings.Replace(settings("fixed", "old"), "kind:", "immutable: true, kind:", 1)
			old := s.mustApply(create(s.object(settings("old", "v"))), create(s.object(fixed)))
			objects := []*unstructured.Unstructured{
				s.object(account), s.object(strings.Replace(fixed, "old", "new", 1)), s.object(secret), s.object(workload("", "")),
			}
			ctx, cancel := context.WithCancel(t.Context())
			report, err := s.applier.Apply(ctx, s.target(), s.remaining(objects, old[0]), func(done, _ int) {
				if done == last {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) || len(report.Written) != last {
				t.Fatalf("%d written, %v", len(report.Written), err)
			}
			s.mustApply(s.remaining(objects, old[0])...)
			for _, o := range objects {
				live := s.live(o)
				if live == nil {
					t.Fatalf("%s does not exist", o.GetName())
				}
				if data, holds := o.Object["data"]; holds {
					checkHasAll(t, o.GetName(), data, live.Object["data"])
				}
			}
			if s.live(old[0]) != nil {
				t.Error("unwanted object still exists")
			}
		})
	}
}

// remaining returns the steps that a plan would have.
func (s *fixture) remaining(wanted []*unstructured.Unstructured, unwanted *unstructured.Unstructured) []apply.Step {
	s.Helper()
	var steps []apply.Step
	for _, o := range wanted {
		if live := s.live(o); live != nil {
			steps = append(steps, update(live, o))
		} else {
			steps = append(steps, create(o))
		}
	}
	if live := s.live(unwanted); live != nil {
		steps = append(steps, remove(live))
	}
	return steps
}

// TestStatusIsNoChange has controllers write statuses between steps.
func TestStatusIsNoChange(t *testing.T) {
	s := newTarget(t, "statuses", account)
	budget := "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: TARGET}, " +
		"spec: {minAvailable: 1, selector: {matchLabels: {app: none}}}}"
	live := s.mustApply(create(s.object(budget)))[0]
	report := func(condition string) {
		content := `{"status":{"conditions":[{"type":"` + condition + `","status":"True","reason":"R","message":"",` +
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
		options := metav1.PatchOptions{FieldManager: "controller"}
		_, err := s.resource(live).Patch(t.Context(), "web", types.MergePatchType, []byte(content), options, "status")
		if err != nil {
			t.Fatal(err)
		}
	}
	report("First")
	next := s.mustApply(update(live, s.object(strings.Replace(budget, "minAvailable: 1", "minAvailable: 2", 1))))[0]
	if got := text(next, "spec", "minAvailable"); got != "2" {
		t.Errorf("minAvailable = %s", got)
	}
	report("Second")
	s.mustApply(remove(next))
	// The controller sets the revision annotation of a Deployment together with its status.
	next = s.mustApply(create(s.object(workload("", ""))))[0]
	s.eventually("its controller", func(context.Context) (bool, error) {
		return text(s.live(next), "metadata", "annotations", "deployment.kubernetes.io/revision") != "", nil
	})
	s.mustApply(update(next, s.object(workload("paused: true, ", ""))))
}

func TestImmutableObjects(t *testing.T) {
	s := newTarget(t, "immutable")
	for kind, o := range map[string]string{"ConfigMap": settings("a", "old"), "Secret": secret} {
		t.Run(kind, func(t *testing.T) {
			fixed := strings.Replace(o, "kind:", "immutable: true, kind:", 1)
			before := s.mustApply(create(s.object(fixed)))[0]
			// Labels can be changed.
			labelled := strings.Replace(fixed, "metadata: {", "metadata: {labels: {x: z}, ", 1)
			same := s.mustApply(update(before, s.object(labelled)))[0]
			if same.GetUID() != before.GetUID() {
				t.Error("object was replaced for a label")
			}
			after := s.mustApply(update(same, s.object(strings.NewReplacer("old", "new", password, "another").Replace(fixed))))[0]
			if after.GetUID() == before.GetUID() || cmp.Equal(after.Object["data"], before.Object["data"]) {
				t.Error("object was not replaced")
			}
			checkManager(t, after)
		})
	}
	t.Run("with a concurrent change", func(t *testing.T) {
		fixed := strings.Replace(settings("b", "old"), "kind:", "immutable: true, kind:", 1)
		before := s.mustApply(create(s.object(fixed)))[0]
		s.putAs("alice", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: TARGET, labels: {x: z}}}")
		got := s.expectRefused(update(before, s.object(strings.Replace(fixed, "old", "new", 1))))
		if diff := cmp.Diff([]string{"ConfigMap b has been changed meanwhile"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestRemovalOfOwnedFields removes the value of a variable that another field manager has changed, and gives it another source.
func TestRemovalOfOwnedFields(t *testing.T) {
	s := newTarget(t, "removal", account)
	first := s.object(workload("", ", env: [{name: LEVEL, value: info}, {name: MODE, value: live}]"))
	s.mustApply(create(first))
	live := s.putAs("alice", workload("", ", env: [{name: LEVEL, value: debug}, {name: MINE, value: hers}]"))
	next := s.object(workload("",
		", env: [{name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: level}}}, {name: MODE, value: live}]"))
	merger := merge.Merger{Schemas: kubediff.NewSchemas(nil, clock.RealClock{}), Manager: manager}
	result, err := merger.Shared(t.Context(), merge.Versions{Base: first, Live: live, Desired: next})
	if err != nil {
		t.Fatal(err)
	}
	removal, err := result.RemovalPatch(live)
	if err != nil || removal == nil {
		t.Fatalf("removal %s, %v", removal, err)
	}
	after := live.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(after.Object, "spec", "template", "spec", "containers")
	env := containers[0].(map[string]any)["env"].([]any)
	for i := range env {
		if item := env[i].(map[string]any); item["name"] == "LEVEL" {
			delete(item, "value")
			item["valueFrom"] = map[string]any{"configMapKeyRef": map[string]any{"name": "settings", "key": "level"}}
		}
	}
	if err := unstructured.SetNestedSlice(after.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	step := apply.Step{Verb: apply.Update, Live: live, Removal: removal, Apply: result.Apply, After: after}
	got := s.mustApply(step)[0]
	containers, _, _ = unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
	var variables []string
	for _, item := range containers[0].(map[string]any)["env"].([]any) {
		variable := &unstructured.Unstructured{Object: item.(map[string]any)}
		variables = append(variables, text(variable, "name")+"="+text(variable, "value")+text(variable, "valueFrom", "configMapKeyRef", "key"))
	}
	if diff := cmp.Diff([]string{"LEVEL=level", "MODE=live", "MINE=hers"}, variables); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The same step is outdated now.
	if lines := s.expectRefused(step); len(lines) != 1 || !strings.HasPrefix(lines[0], "Deployment web has been changed meanwhile") {
		t.Errorf("got %q", lines)
	}
}
