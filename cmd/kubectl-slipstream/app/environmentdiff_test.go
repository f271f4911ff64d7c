// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// alice is the environment whose syncs are planned.
const alice = ofTeams + "environments/alice"

func quoted(value string) *string { return new(`"` + value + `"`) }

// byJane is the origin of a change, an hour ago.
func byJane() ([]v1alpha1.SourceAuthor, []v1alpha1.MirroredCommit) {
	return []v1alpha1.SourceAuthor{{Username: "jane@example.com", Signal: v1alpha1.SignalAudit}},
		[]v1alpha1.MirroredCommit{{CommitSummary: v1alpha1.CommitSummary{
			SHA: "4f2c9e1a5b", Time: metav1.NewTime(time.Now().Add(-61 * time.Minute)),
		}}}
}

// image is the change of an image by jane.
func image() v1alpha1.ObjectChange {
	authors, commits := byJane()
	return v1alpha1.ObjectChange{
		Action: v1alpha1.SyncActionCatalog, APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "shop-alice",
		ChangeType: v1alpha1.ChangeChanged, ChangedBy: authors, Commits: commits,
		Fields: []v1alpha1.FieldChange{{
			Field: "/spec/template/spec/containers[name=web]/image", ChangeType: v1alpha1.ChangeChanged, Owners: []string{"slipstream"},
			Before: quoted("shop/web:1.8"), After: quoted("shop/web:1.9"),
		}},
	}
}

// password is the change of a Secret as diff shows it.
func password() v1alpha1.ObjectChange {
	return v1alpha1.ObjectChange{
		Action: v1alpha1.SyncActionCluster, APIVersion: "v1", Kind: "Secret", Name: "db", ChangeType: v1alpha1.ChangeChanged,
		Fields: []v1alpha1.FieldChange{{Field: "/data/password", ChangeType: v1alpha1.ChangeChanged, Hidden: true}},
	}
}

func planOf(changes ...v1alpha1.ObjectChange) v1alpha1.EnvironmentDiff {
	return v1alpha1.EnvironmentDiff{
		TypeMeta:   metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "EnvironmentDiff"},
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Namespace: "teams"},
		Status:     v1alpha1.SyncPlan{FromRevision: 41, Revision: 42, Changes: changes, Unchanged: 14},
	}
}

func TestDiffOfAnEnvironment(t *testing.T) {
	web := image()
	web.Fields = append(web.Fields,
		v1alpha1.FieldChange{
			Field: "/spec/replicas", ChangeType: v1alpha1.ChangeChanged, Owners: []string{"kubectl-edit", "slipstream"}, Conflict: true,
			Before: new("2"), After: new("4"),
		},
		v1alpha1.FieldChange{
			Field:      "/spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=TCP]",
			ChangeType: v1alpha1.ChangeAdded, After: new(`{"containerPort":80,"protocol":"TCP"}`),
		},
		v1alpha1.FieldChange{Field: "/metadata/annotations/example.com~1note", ChangeType: v1alpha1.ChangeRemoved, Before: quoted("1\u202e")})
	config := v1alpha1.ObjectChange{
		APIVersion: "v1", Kind: "ConfigMap", Name: "a-rather-long-name-of-a-config-map-of-the-shop", ChangeType: v1alpha1.ChangeChanged,
		Fields: []v1alpha1.FieldChange{{
			Field: "/data/settings", ChangeType: v1alpha1.ChangeChanged, Before: quoted(`a\nb\nc\nd\n`), After: quoted(`a\nb\nC\nd\n`),
		}},
	}
	plan := planOf(web, password(), config,
		v1alpha1.ObjectChange{APIVersion: "v1", Kind: "Service", Name: "web", ChangeType: v1alpha1.ChangeAdded, Refusal: "exists already"},
		v1alpha1.ObjectChange{APIVersion: "batch/v1", Kind: "CronJob", Name: "report", ChangeType: v1alpha1.ChangeRemoved})
	plan.Status.Warnings = []string{"no data is copied"}
	s := lackingServer(t, map[string]any{alice + "/diff": plan}, v1alpha1.EnvironmentStatus{})
	out, notes, code, err := s.call(t.Context(), "diff", "alice", "-n", "teams")
	if code != 1 || !strings.Contains(err.Error(), "there are differences") || notes != "Warning: no data is copied\n" {
		t.Errorf("ends with %d: %v, noted %q", code, err, notes)
	}
	want := `~ Deployment/web  spec.template.spec.containers[web].image
    - shop/web:1.8
    + shop/web:1.9       jane@example.com, audit, commit 4f2c9e1, 61m ago
~ Deployment/web  spec.replicas  (conflict: owned by kubectl-edit)
    - 2
    + 4
~ Deployment/web  spec.template.spec.containers[web].ports[containerPort=80,protocol=TCP]
    + containerPort: 80
    + protocol: TCP
~ Deployment/web  metadata.annotations["example.com/note"]
    - 1\u202e
~ Secret/db       key password changed (value hidden)
~ ConfigMap/a-rather-long-name-of-a-config-map-of-the-shop  data.settings
      line 2
      b
    - c
    + C
      d
+ Service/web     to create
    ! exists already
- CronJob/report  to delete
1 create, 3 updates, 1 delete, 14 unchanged
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestDiffOfAnEnvironmentEnds(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("environments/diff"), "alice", io.EOF).Status()
	tests := map[string]struct {
		answer  any
		args    []string
		code    int
		out     string
		problem string
	}{
		"no difference":             {answer: planOf(), args: []string{"alice"}, out: "No difference, 14 unchanged\n"},
		"with an abbreviation":      {answer: planOf(), args: []string{"env/alice"}, out: "No difference, 14 unchanged\n"},
		"with the type and a blank": {answer: planOf(), args: []string{"envt", "alice"}, out: "No difference, 14 unchanged\n"},
		"with the type":             {answer: planOf(), args: []string{"environment/alice"}, out: "No difference, 14 unchanged\n"},
		"with the type, too":        {answer: planOf(), args: []string{"envt", "alice"}, out: "No difference, 14 unchanged\n"},
		"as JSON": {
			answer: planOf(image()), args: []string{"alice", "-o", "jsonpath={.kind} {.status.changes[0].name}"}, code: 1,
			out: "EnvironmentDiff web", problem: "there are differences",
		},
		"no permission":       {answer: forbidden, args: []string{"alice"}, code: 5, problem: "forbidden"},
		"no such environment": {answer: planOf(), args: []string{"bob"}, code: 2, problem: "not found"},
		"another type":        {args: []string{"deployment/web"}, code: 2, problem: "--from is missing"},
		"nothing":             {code: 2, problem: "name one Environment, as in kubectl slipstream diff alice"},
		"two":                 {args: []string{"alice", "bob"}, code: 2, problem: "--from is missing"},
		"a flag of the other": {args: []string{"alice", "--to", "1h"}, code: 2, problem: "--to is only for a comparison"},
		"both":                {args: []string{"alice", "--from", "1h", "-o", "json"}, code: 2, problem: "--output is only for an Environment"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := lackingServer(t, map[string]any{alice + "/diff": tt.answer}, v1alpha1.EnvironmentStatus{})
			out, _, code, err := s.call(t.Context(), append([]string{"diff", "-n", "teams"}, tt.args...)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("ends with %d: %v", code, err)
			}
			if out != tt.out {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestSecretDiff checks that values are shown as text, and only those of Secrets.
func TestSecretDiff(t *testing.T) {
	secret := password()
	secret.Fields = []v1alpha1.FieldChange{
		{Field: "/data/password", ChangeType: v1alpha1.ChangeChanged, Before: quoted("b2xk"), After: quoted("bmV3")},
		{Field: "/data/key", ChangeType: v1alpha1.ChangeAdded, After: quoted("//79")},
	}
	s := lackingServer(t, map[string]any{alice + "/secretdiff": planOf(image(), secret)}, v1alpha1.EnvironmentStatus{})
	if _, _, code, err := s.call(t.Context(), "secretdiff", "pod/alice", "-n", "teams"); code != 2 || err == nil ||
		!strings.Contains(err.Error(), "it takes environment") {
		t.Errorf("another type: exit code %d: %v", code, err)
	}
	out, _, code, err := s.call(t.Context(), "secretdiff", "env/alice", "-n", "teams")
	want := "~ Secret/db  data.password\n    - old\n    + new\n~ Secret/db  data.key\n    + 3 bytes, no text\n1 update\n"
	if code != 1 || err == nil {
		t.Errorf("ends with %d: %v", code, err)
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	forbidden := apierrors.NewForbidden(v1alpha1.Resource("environments"), "alice", io.EOF).Status()
	s = lackingServer(t, map[string]any{alice + "/secretdiff": forbidden}, v1alpha1.EnvironmentStatus{})
	if out, _, code, err := s.call(t.Context(), "secretdiff", "alice", "-n", "teams"); code != 5 || out != "" {
		t.Errorf("ends with %d: %v, printed %q", code, err, out)
	}
}

// explained runs explain-drift for an environment with a spec, a status and a plan.
func explained(t *testing.T, e v1alpha1.Environment, plan v1alpha1.EnvironmentDiff, args ...string) (out string, code int, err error) {
	t.Helper()
	objects := map[string]any{}
	s := lackingServer(t, objects, v1alpha1.EnvironmentStatus{})
	e.TypeMeta = metav1.TypeMeta{APIVersion: "configbutler.ai/v1alpha1", Kind: "Environment"}
	e.Name, e.Namespace, e.Spec.CatalogRef.Name = "alice", "teams", "shop"
	objects[alice], objects[alice+"/diff"] = e, plan
	out, _, code, err = s.call(t.Context(), append([]string{"explain-drift", "alice", "-n", "teams"}, args...)...)
	return out, code, err
}

func TestExplainDrift(t *testing.T) {
	held := v1alpha1.Environment{Spec: v1alpha1.EnvironmentSpec{AutoSync: true}}
	held.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWindowClosed, Message: "window nightly opens 18:00",
	}}
	out, code, err := explained(t, held, planOf(image(), password()), "deployment/web")
	if err != nil || code != 0 {
		t.Fatal(code, err)
	}
	want := `Deployment/web is behind by one change: spec.template.spec.containers[web].image shop/web:1.8 -> shop/web:1.9
  production  jane@example.com (audit), commit 4f2c9e1, 61m ago
  here        shop/web:1.8, owned by slipstream, applied at r41
  why not     auto-sync waits for its window: window nightly opens 18:00
  do          kubectl slipstream sync alice -n teams --force
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}

	removed := v1alpha1.ObjectChange{APIVersion: "batch/v1", Kind: "CronJob", Name: "report", ChangeType: v1alpha1.ChangeRemoved}
	out, _, err = explained(t, v1alpha1.Environment{}, planOf(password(), removed))
	if err != nil {
		t.Fatal(err)
	}
	want = `Secret/db is behind by one change: key password changed (value hidden)
  production  who changed it is not known
  here        the owner is not known, applied at r41
CronJob/report is here, and no longer offered
  production  who changed it is not known
  here        applied at r41
All 2 objects
  why not     manual sync: spec.autoSync is off
  do          kubectl slipstream sync alice -n teams
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

// TestCausesOfDrift has a cause of each kind.
func TestCausesOfDrift(t *testing.T) {
	because := func(condition, reason, message string) func(*v1alpha1.Environment) {
		return func(e *v1alpha1.Environment) {
			e.Status.Conditions = append(e.Status.Conditions,
				metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
		}
	}
	automatic := func(e *v1alpha1.Environment) { e.Spec.AutoSync = true }
	tests := map[string]struct {
		with    []func(*v1alpha1.Environment)
		refusal string
		why, do string
	}{
		"by hand": {why: "manual sync: spec.autoSync is off", do: "kubectl slipstream sync alice -n teams\n"},
		"syncing": {
			with: []func(*v1alpha1.Environment){because(v1alpha1.ConditionSyncing, v1alpha1.ReasonProgressing, "")},
			why:  "a sync is running", do: "kubectl slipstream status -w -n teams\n",
		},
		"conflict": {
			with: []func(*v1alpha1.Environment){func(e *v1alpha1.Environment) {
				e.Status.Conflicts = []v1alpha1.WorkloadConflict{{
					Kind: "Deployment", Name: "web", Fields: []v1alpha1.FieldConflict{{Field: "/spec/replicas", Managers: []string{"kubectl-edit"}}},
				}}
			}},
			why: "conflict: it was changed here, too, by kubectl-edit", do: "kubectl slipstream resolve alice -n teams\n",
		},
		"refused": {refusal: "no quota", why: "refused: no quota", do: "kubectl slipstream sync alice -n teams, once that is repaired\n"},
		"stalled": {
			with: []func(*v1alpha1.Environment){because(v1alpha1.ConditionStalled, v1alpha1.ReasonTargetTaken, "bob has it")},
			why:  "stalled: bob has it", do: "kubectl describe environment alice -n teams\n",
		},
		"failed": {
			with: []func(*v1alpha1.Environment){func(e *v1alpha1.Environment) { e.Status.LastError = &v1alpha1.SyncError{Message: "no quota"} }},
			why:  "the last sync failed: no quota", do: "kubectl slipstream sync alice -n teams, once",
		},
		"pinned": {
			with: []func(*v1alpha1.Environment){automatic, func(e *v1alpha1.Environment) { e.Spec.PinnedRevision = new(int64(41)) }},
			why:  "pinned at r41", do: "kubectl slipstream unpin alice -n teams\n",
		},
		"dismissed": {
			with: []func(*v1alpha1.Environment){func(e *v1alpha1.Environment) {
				e.Status.LatestCatalogSync, e.Status.DismissedCatalogSync = "shop-x", "shop-x"
			}},
			why: "the change was dismissed", do: "kubectl slipstream sync alice -n teams\n",
		},
		"shadow": {
			with: []func(*v1alpha1.Environment){automatic, func(e *v1alpha1.Environment) { e.Spec.Shadow = true }},
			why:  "shadow: automatic syncs are only recorded", do: "kubectl slipstream sync alice -n teams\n",
		},
		"suspended": {
			with: []func(*v1alpha1.Environment){automatic, because(v1alpha1.ConditionHeld, v1alpha1.ReasonSuspended, "by the SyncPolicy")},
			why:  "auto-sync waits: by the SyncPolicy", do: "kubectl slipstream sync alice -n teams\n",
		},
		"rate": {
			with: []func(*v1alpha1.Environment){automatic, because(v1alpha1.ConditionHeld, v1alpha1.ReasonRateLimited, "10 a minute")},
			why:  "auto-sync waits: 10 a minute", do: "kubectl slipstream status -w -n teams\n",
		},
		"about to begin": {
			with: []func(*v1alpha1.Environment){automatic, func(e *v1alpha1.Environment) { e.Status.ActiveSyncs = []string{"alice-x"} }},
			why:  "a sync is about to begin: alice-x", do: "kubectl slipstream status -w -n teams\n",
		},
		"unknown": {with: []func(*v1alpha1.Environment){automatic}, why: "not known: auto-sync is on", do: "kubectl slipstream status -w"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var e v1alpha1.Environment
			for _, do := range tt.with {
				do(&e)
			}
			change := image()
			change.Refusal = tt.refusal
			out, _, err := explained(t, e, planOf(change))
			if err != nil || !strings.Contains(out, "  why not     "+tt.why) || !strings.Contains(out, "  do          "+tt.do) {
				t.Errorf("%v, printed:\n%s", err, out)
			}
		})
	}
}

func TestExplainDriftEnds(t *testing.T) {
	e := v1alpha1.Environment{Status: v1alpha1.EnvironmentStatus{State: "Synced"}}
	tests := map[string]struct {
		plan    v1alpha1.EnvironmentDiff
		args    []string
		code    int
		out     string
		problem string
	}{
		"nothing differs": {
			plan: planOf(), out: "Environment alice has what its catalog offers at r42\n  state       Synced\n  catalog     follows production: Not looked at yet\n",
		},
		"another object differs": {
			plan: planOf(image()), args: []string{"cronjob/report"},
			out: "cronjob/report does not differ, or is no object of Environment alice. These differ: Deployment/web\n",
		},
		"no object":   {plan: planOf(), args: []string{"web"}, code: 2, problem: `"web" names no object: it is KIND/NAME, such as deployment/web`},
		"three names": {args: []string{"a/b", "c/d"}, code: 2, problem: "accepts between 1 and 2 arg(s), received 3\nSee 'kubectl slipstream explain-drift --help'"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, code, err := explained(t, e, tt.plan, tt.args...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("ends with %d: %v", code, err)
			}
			if out != tt.out {
				t.Errorf("printed %q", out)
			}
		})
	}
}
