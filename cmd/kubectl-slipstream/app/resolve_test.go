// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	imageField    = "/spec/template/spec/containers[name=web]/image"
	replicasField = "/spec/replicas"
)

// conflictingServer has the environment alice with conflicts in two workloads. A patch of the environment sets the image of the worker.
func conflictingServer(t *testing.T) *requestServer {
	t.Helper()
	dave := []string{"dave"}
	status := v1alpha1.EnvironmentStatus{Conflicts: []v1alpha1.WorkloadConflict{
		{Kind: "Deployment", Name: "web", Fields: []v1alpha1.FieldConflict{{Field: imageField, Managers: dave}, {Field: replicasField, Managers: dave}}},
		{Kind: "Deployment", Name: "worker", Fields: []v1alpha1.FieldConflict{
			{Field: imageField, Managers: []string{v1alpha1.FieldManager}}, {Field: replicasField, Managers: dave},
		}},
	}}
	here, offered := `"web:dave"`, `"web:2"`
	diff := &v1alpha1.EnvironmentDiff{TypeMeta: typeMeta("EnvironmentDiff"), Status: v1alpha1.SyncPlan{Changes: []v1alpha1.ObjectChange{
		{Kind: "Deployment", Name: "web", Fields: []v1alpha1.FieldChange{
			{Field: imageField, Before: &here, After: &offered, Conflict: true}, {Field: replicasField, Hidden: true},
		}},
	}}}
	return serveRequests(t, map[string][]any{
		alicePath: envtLives(status), ofTeams + "environments/calm": {&v1alpha1.Environment{TypeMeta: typeMeta("Environment"), ObjectMeta: objectMeta("calm", nil)}},
		recordPath: recordLives(completed),
	}, map[string]any{
		alicePath + "/diff":    diff,
		alicePath + "/resolve": &v1alpha1.ConflictResolution{TypeMeta: typeMeta("ConflictResolution"), Status: outcomeOf("Decided", "alice-b4d9q")},
	})
}

func TestResolve(t *testing.T) {
	choice := func(name string, fields ...string) string {
		return `{"kind":"Deployment","name":"` + name + `","fields":["` + strings.Join(fields, `","`) + `"]}`
	}
	tests := []struct {
		args                  string
		code                  int
		request, out, problem string
	}{
		{
			args: "alice", code: 4, problem: "4 fields wait for a decision, and there is no terminal to ask on",
			out: "Deployment/web " + imageField + "\n  here     \"web:dave\"  (dave)\n  catalog  \"web:2\"\n" +
				"Deployment/web /spec/replicas\n  here     (not shown)  (dave)\n  catalog  (not shown)\n" +
				"Deployment/worker " + imageField + "\n  here     (not shown)  (spec.patches of the environment; it can only be kept)\n  catalog  (not shown)\n" +
				"Deployment/worker /spec/replicas\n  here     (not shown)  (dave)\n  catalog  (not shown)\n",
		},
		{
			args: "alice --keep", out: "environment/alice: Synced (alice-b4d9q)\n",
			request: `"keep":[` + choice("web", imageField, replicasField) + "," + choice("worker", imageField, replicasField) + "]}",
		},
		{
			args: "alice --take", out: "environment/alice: Synced (alice-b4d9q)\n",
			request: `{"keep":[` + choice("worker", imageField) + `],"take":[` + choice("web", imageField, replicasField) + "," +
				choice("worker", replicasField) + "]}",
		},
		{
			args: "alice --keep=/spec/replicas --take=deploy/web" + imageField, out: "environment/alice: Synced (alice-b4d9q)\n",
			request: `{"keep":[` + choice("web", replicasField) + "," + choice("worker", replicasField) + `],"take":[` + choice("web", imageField) + "]}",
		},
		{args: "alice --take=deployment/web", out: "environment/alice: Synced (alice-b4d9q)\n", request: `{"take":[` + choice("web", imageField, replicasField) + "]}"},
		{args: "alice --take=/spec/x", code: 2, problem: "--take=/spec/x is none of the conflicts: name a field such as " + imageField},
		{args: "alice --take=deployment/worker" + imageField, code: 2, problem: "spec.patches of the environment set the field: remove it there"},
		{args: "alice --keep=/spec/replicas --take=/spec/replicas", code: 2, problem: "Deployment/web /spec/replicas is both kept and taken"},
		{args: "alice --keep --take", code: 2, problem: "--keep and --take cannot both decide about all fields"},
		{args: "alice --keep /spec/replicas", code: 2, problem: "write --keep=FIELD and --take=FIELD with an equals sign"},
		{args: "calm", out: "environment/calm has no conflicts\n"},
		{args: "catalog/shop", code: 2, problem: "it takes environment"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			s := conflictingServer(t)
			out, _, code, err := s.in(t, append([]string{"resolve"}, strings.Fields(tt.args)...)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("exit code %d: %v", code, err)
			}
			if out != tt.out {
				t.Errorf("printed %q, want %q", out, tt.out)
			}
			if got := strings.Join(s.writes, ""); (got == "") != (tt.request == "") || !strings.Contains(got, tt.request) {
				t.Errorf("requested %s, want %s", got, tt.request)
			}
		})
	}
}

// TestResolveWithoutDiff decides without the values of both sides.
func TestResolveWithoutDiff(t *testing.T) {
	s := conflictingServer(t)
	s.answers[alicePath+"/diff"] = apierrors.NewForbidden(v1alpha1.Resource("environments"), "alice", errors.New("no")).Status()
	out, notes, code, err := s.in(t, "resolve", "alice", "--keep=/spec/replicas")
	if code != 0 || err != nil || out != "environment/alice: Synced (alice-b4d9q)\n" || !strings.HasPrefix(notes, "The values are not shown: ") ||
		!strings.HasSuffix(notes, "\n2 fields stay in conflict\n") {
		t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, notes)
	}
}

// TestResolveAllButOne says that one field stays in conflict.
func TestResolveAllButOne(t *testing.T) {
	_, notes, code, err := conflictingServer(t).in(t, "resolve", "alice", "--keep=deployment/web", "--take=deployment/worker/spec/replicas")
	if code != 0 || err != nil || !strings.Contains(notes, "1 field stays in conflict\n") {
		t.Errorf("exit code %d, %v, printed %q", code, err, notes)
	}
}

// TestResolveLimitsTheRequest reads the conflicts without the time limit, which begins after the questions.
func TestResolveLimitsTheRequest(t *testing.T) {
	s := conflictingServer(t)
	_, _, code, err := s.in(t, "resolve", "alice", "--keep", "--timeout=1ns")
	if code != 124 || err == nil || !strings.Contains(err.Error(), "the server has not responded yet; kubectl get environments alice -n teams shows") {
		t.Errorf("exit code %d: %v", code, err)
	}
}

// TestResolveNothing prints no sentence where a program expects an object.
func TestResolveNothing(t *testing.T) {
	out, notes, code, err := conflictingServer(t).in(t, "resolve", "calm", "-o", "json")
	if code != 0 || err != nil || out != "" || notes != "environment/calm has no conflicts\n" {
		t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, notes)
	}
}

// TestResolveWaitsForFields has the fields of a conflict listed after the record of the sync has reported it.
func TestResolveWaitsForFields(t *testing.T) {
	listed := v1alpha1.EnvironmentStatus{Conflicts: []v1alpha1.WorkloadConflict{
		{Kind: "Deployment", Name: "web", Fields: []v1alpha1.FieldConflict{{Field: replicasField, Managers: []string{"dave"}}}},
	}}
	s := serveRequests(t, map[string][]any{
		alicePath:  envtLives(v1alpha1.EnvironmentStatus{}, listed),
		recordPath: recordLives(v1alpha1.SyncRecord{State: v1alpha1.SyncStateConflicted}),
	}, nil)
	out, _, code, err := s.in(t, "resolve", "alice")
	if code != 4 || err == nil || !strings.HasPrefix(err.Error(), "1 field waits for a decision") || !strings.HasPrefix(out, "Deployment/web /spec/replicas\n") {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}
