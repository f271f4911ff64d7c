// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	alicePath  = ofTeams + "environments/alice"
	recordPath = ofTeams + "syncstatuses/alice-b4d9q"
	syncNotice = "Waiting until the sync has ended. Ctrl-C ends the wait, and the sync continues; --timeout limits the wait\n"
)

var (
	completed = v1alpha1.SyncRecord{State: v1alpha1.SyncStateCompleted}
	syncing   = v1alpha1.SyncRecord{State: v1alpha1.SyncStateInProgress, Progress: &v1alpha1.Progress{Done: 3, Total: 10}}
	// begun is the response once there is a record.
	begun = v1alpha1.RequestOutcome{ID: "r1", Message: "The request is being processed", SyncStatuses: []string{"alice-b4d9q"}}
)

// TestSyncFollowsTheRecord checks the request of each flag, and that the last state is printed.
func TestSyncFollowsTheRecord(t *testing.T) {
	s := serveRequests(t, map[string][]any{recordPath: recordLives(syncing, completed)}, map[string]any{alicePath + "/sync": syncAnswer(begun)})
	out, progress, code, err := s.in(t, "sync", "alice", "--action", "cluster", "--force", "--workloads", "deploy/web,cronjobs/report", "--workloads", "job/once",
		"--expected-catalog-sync", "shop-1", "--expected-dependency-sync", "alice-1")
	if err != nil || code != 0 || out != "environment/alice: Synced (alice-b4d9q)\n" || progress != syncNotice+"Syncing: 3 of 10\n" {
		t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, progress)
	}
	want := `POST environments/alice/sync? {"kind":"SyncRequest","apiVersion":"configbutler.ai/v1alpha1","metadata":{},` +
		`"spec":{"action":"Cluster","expectedCatalogSync":"shop-1","expectedDependencySync":"alice-1","force":true,` +
		`"workloads":[{"kind":"Deployment","name":"web"},{"kind":"CronJob","name":"report"},{"kind":"Job","name":"once"}]},"status":{}}` + "\n"
	if diff := cmp.Diff([]string{want}, s.writes); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestSyncThatWaits has a request that no record describes yet.
func TestSyncThatWaits(t *testing.T) {
	waits := v1alpha1.EnvironmentStatus{
		ObservedGeneration: 1, PendingRequests: []v1alpha1.PendingEnvironmentRequest{{ID: "r1"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Message: "window nightly opens 22:00 UTC"}},
	}
	over := v1alpha1.EnvironmentStatus{ObservedGeneration: 1, LastError: &v1alpha1.SyncError{Message: "the target does not exist"}}
	answer := map[string]any{alicePath + "/sync": syncAnswer(v1alpha1.RequestOutcome{ID: "r1", Message: "The request is accepted"})}
	s := serveRequests(t, map[string][]any{alicePath: envtLives(waits, over)}, answer)
	s.lives[ofTeams+"syncstatuses/bob-1"] = []any{&v1alpha1.SyncStatus{TypeMeta: typeMeta("SyncStatus"), ObjectMeta: objectMeta("bob-1", nil)}}
	out, progress, code, err := s.in(t, "sync", "alice")
	if err != nil || code != 0 || out != "environment/alice: Failed: the target does not exist\n" ||
		progress != syncNotice+"Held: window nightly opens 22:00 UTC\n" {
		t.Errorf("without a record: exit code %d, %v, printed %q and %q", code, err, out, progress)
	}
	s.lives[recordPath] = recordLives(completed)
	if out, _, code, err := s.in(t, "sync", "environments.configbutler.ai/alice"); err != nil || code != 0 ||
		out != "environment/alice: Synced (alice-b4d9q)\n" {
		t.Errorf("with a record: exit code %d, %v, printed %q", code, err, out)
	}
}

func TestSyncEnds(t *testing.T) {
	failure := v1alpha1.ObjectFailure{Type: "Deployment", Namespace: "alice", Name: "web", Reason: "Refused", Message: "exceeded quota: pods"}
	problem := &v1alpha1.SyncError{Message: "1 object was refused"}
	environments := v1alpha1.Resource("environments")
	two, three := "2", "3"
	tests := map[string]struct {
		record       v1alpha1.SyncRecord
		answer       any
		args         []string
		code         int
		out, problem string
	}{
		"failed": {
			record: v1alpha1.SyncRecord{State: v1alpha1.SyncStateManualIntervention, Error: problem, Failures: []v1alpha1.ObjectFailure{failure}}, code: 3,
			out:     "environment/alice: Needs a decision: 1 object was refused (alice-b4d9q)\n  Deployment alice/web: exceeded quota: pods\n",
			problem: "the sync failed: correct the cause, then try again with kubectl slipstream retry alice-b4d9q -n teams",
		},
		"conflicts": {
			record: v1alpha1.SyncRecord{State: v1alpha1.SyncStateConflicted}, code: 4, out: "environment/alice: Conflict (alice-b4d9q)\n",
			problem: "fields are in conflict: decide about them with kubectl slipstream resolve alice -n teams",
		},
		"superseded": {
			record: v1alpha1.SyncRecord{State: v1alpha1.SyncStateSuperseded}, code: 4, out: "environment/alice: Superseded (alice-b4d9q)\n",
			problem: "a newer sync has replaced this one",
		},
		"dismissed": {
			record: v1alpha1.SyncRecord{State: v1alpha1.SyncStateDismissed, ResolvedBy: "joe"}, code: 3,
			out: "environment/alice: Dismissed by joe (alice-b4d9q)\n", problem: "joe has dismissed it",
		},
		"time limit": {
			record: syncing, args: []string{"--timeout", "300ms"}, code: 124, out: "environment/alice: Syncing: 3 of 10\n",
			problem: "stopped waiting for environment/alice: context deadline exceeded; the sync continues, and " +
				"kubectl get syncstatus alice-b4d9q -n teams --watch shows its progress",
		},
		"without a wait": {args: []string{"--wait=false"}, out: "environment/alice: The request is being processed\n"},
		"dry run": {
			answer: &v1alpha1.SyncRequest{TypeMeta: typeMeta("SyncRequest"), Status: v1alpha1.SyncRequestStatus{
				RequestOutcome: v1alpha1.RequestOutcome{Message: "Would sync workloads (dry run)"}, Plan: &v1alpha1.SyncPlan{
					Unchanged: 14, Changes: []v1alpha1.ObjectChange{
						{Kind: "Deployment", Name: "web", ChangeType: v1alpha1.ChangeChanged, Fields: []v1alpha1.FieldChange{{Field: "/spec/replicas", Before: &two, After: &three}}},
						{Kind: "ConfigMap", Name: "web", ChangeType: v1alpha1.ChangeAdded, Refusal: "exceeded quota"},
						{Kind: "CronJob", Name: "report", ChangeType: v1alpha1.ChangeRemoved},
					},
				},
			}},
			args: []string{"--dry-run"},
			out: "environment/alice: Would sync workloads (dry run)\n~ Deployment/web  spec.replicas\n    - 2\n    + 3\n" +
				"+ ConfigMap/web   to create\n    ! exceeded quota\n- CronJob/report  to delete\n1 create, 1 update, 1 delete, 14 unchanged\n",
		},
		"JSON":      {record: completed, args: []string{"-o", "jsonpath={.status.message} {.status.syncStatuses[0]}"}, out: "Synced alice-b4d9q"},
		"name":      {record: completed, args: []string{"-o", "name"}, out: "syncrequest.configbutler.ai/alice\n"},
		"no rights": {answer: apierrors.NewForbidden(environments, "alice", errors.New("no")).Status(), code: 5, problem: "is forbidden"},
		"newer changes": {
			answer: apierrors.NewConflict(environments, "alice", errors.New("there is a newer one")).Status(), code: 4, problem: "there is a newer one",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.answer == nil {
				tt.answer = syncAnswer(begun)
			}
			s := serveRequests(t, map[string][]any{recordPath: recordLives(tt.record)}, map[string]any{alicePath + "/sync": tt.answer})
			out, _, code, err := s.in(t, append([]string{"sync", "alice"}, tt.args...)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("exit code %d: %v", code, err)
			}
			if out != tt.out {
				t.Errorf("printed %q, want %q", out, tt.out)
			}
		})
	}
}

// TestSyncThatIsStalled checks that the wait for a record that has not begun says what its environment says, and ends if a user has to act.
func TestSyncThatIsStalled(t *testing.T) {
	status := func(of, reason, message string) v1alpha1.EnvironmentStatus {
		return v1alpha1.EnvironmentStatus{
			ObservedGeneration: 1, ActiveSyncs: []string{"alice-b4d9q"},
			Conditions: []metav1.Condition{{Type: of, Status: metav1.ConditionTrue, Reason: reason, Message: message}},
		}
	}
	before := status(v1alpha1.ConditionStalled, v1alpha1.ReasonTargetNotFound, "There is no namespace shop-alice")
	before.ActiveSyncs = nil // The status is older than the request.
	environment := func(statuses ...v1alpha1.EnvironmentStatus) []any {
		lives := envtLives(statuses...)
		for _, each := range lives {
			each.(*v1alpha1.Environment).Spec = v1alpha1.EnvironmentSpec{TargetNamespace: "shop-alice", CatalogRef: v1alpha1.ObjectReference{Name: "shop"}}
		}
		return lives
	}
	created := environment(status(v1alpha1.ConditionStalled, v1alpha1.ReasonTargetNotFound, "gone"))
	created[0].(*v1alpha1.Environment).Spec.CreateNamespace = true
	for name, tt := range map[string]struct {
		lives          []any
		code           int
		state, problem string
		progress       string
	}{
		"no target": {
			environment(before, status(v1alpha1.ConditionStalled, v1alpha1.ReasonTargetNotFound, "There is no namespace shop-alice")), 4,
			"Stalled: There is no namespace shop-alice", "TargetNotFound: There is no namespace shop-alice. The sync waits, and begins when that is " +
				"corrected: create the namespace with kubectl create namespace shop-alice, or have the server create it", "",
		},
		"no catalog": {
			environment(status(v1alpha1.ConditionStalled, v1alpha1.ReasonCatalogNotFound, "There is no AppCatalog teams/shop")), 4,
			"Stalled: There is no AppCatalog teams/shop", "kubectl slipstream catalog shop -n teams --from NAMESPACE --apply", "",
		},
		"a stall that the sync ends":      {created, 124, "Waiting: Stalled: gone", "context deadline exceeded", "Waiting: Stalled: gone\n"},
		"a stall from before the request": {environment(before), 124, "Waiting", "context deadline exceeded", ""},
		"a closed window": {
			environment(status(v1alpha1.ConditionHeld, v1alpha1.ReasonWindowClosed, "window nightly opens 22:00 UTC")), 124,
			"Waiting: Held: window nightly opens 22:00 UTC", "context deadline exceeded", "Waiting: Held: window nightly opens 22:00 UTC\n",
		},
		"an environment that may not be read": {nil, 124, "Waiting", "context deadline exceeded", "Waiting\n"},
	} {
		t.Run(name, func(t *testing.T) {
			lives := map[string][]any{recordPath: recordLives(v1alpha1.SyncRecord{State: v1alpha1.SyncStatePending})}
			if tt.lives != nil {
				lives[alicePath] = tt.lives
			}
			arguments := []string{"sync", "alice"}
			if tt.code == 124 {
				arguments = append(arguments, "--timeout=500ms")
			}
			out, progress, code, err := serveRequests(t, lives, map[string]any{alicePath + "/sync": syncAnswer(begun)}).in(t, arguments...)
			_, said, _ := strings.Cut(progress, "\n") // The first line is about the wait.
			if code != tt.code || err == nil || !strings.Contains(err.Error(), tt.problem) || out != "environment/alice: "+tt.state+"\n" ||
				tt.progress != "" && said != tt.progress {
				t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, said)
			}
			if tt.code != 4 {
				return
			}
			out, _, code, err = serveRequests(t, lives, map[string]any{alicePath + "/sync": syncAnswer(begun)}).in(t, "sync", "-l", "team=a")
			if code != 4 || err == nil || !strings.Contains(err.Error(), tt.problem) || !strings.Contains(out, " "+tt.state) {
				t.Errorf("selected: exit code %d, %v, printed %q", code, err, out)
			}
		})
	}
}

func TestSyncArguments(t *testing.T) {
	s := serveRequests(t, nil, nil)
	for args, want := range map[string]string{
		"":                               "NAME or TYPE/NAME or [TYPE] -l SELECTOR is missing",
		"configmap/x":                    `"configmap" is no type of this command: it takes environment, catalog, gitdestination or syncpipeline`,
		"catalog/":                       "catalog/: the name is missing",
		"pipeline/index":                 "kubectl slipstream sync-pipeline NAME",
		"catalog/shop --force":           "--force is only for environments",
		"alice --full":                   "--full is only for gitdestinations",
		"alice --action some":            `--action is "some": it is all, catalog or cluster`,
		"alice --workloads pod/x":        `"pod/x" is no workload`,
		"alice --workloads deployment":   `"deployment" is no workload`,
		"alice --dry-run=client":         `--dry-run is "client": it is none or server`,
		"alice -l team=a":                "give a name or -l SELECTOR, not both",
		"alice bob":                      "accepts 1 arg(s), received 2",
		"catalogs --action all -l a=b":   "--action is only for environments",
		"gitdestination/x --workloads y": "--workloads is only for environments",
	} {
		_, _, code, err := s.in(t, append([]string{"sync"}, strings.Fields(args)...)...)
		if code != 2 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("sync %s: exit code %d: %v", args, code, err)
		}
	}
	if len(s.writes) > 0 {
		t.Errorf("requested %q", s.writes)
	}
}

// TestSyncSelected syncs several environments, of which one may not be synced and one conflicts.
func TestSyncSelected(t *testing.T) {
	named := func(name string) *v1alpha1.Environment {
		return &v1alpha1.Environment{TypeMeta: typeMeta("Environment"), ObjectMeta: objectMeta(name, map[string]string{"team": "a"})}
	}
	other := named("other")
	other.Labels = nil
	lives := map[string][]any{
		alicePath: {named("alice")}, ofTeams + "environments/bob": {named("bob")}, ofTeams + "environments/carol": {named("carol")},
		ofTeams + "environments/other": {other}, recordPath: recordLives(completed),
		ofTeams + "syncstatuses/bob-1": {&v1alpha1.SyncStatus{
			TypeMeta: typeMeta("SyncStatus"), ObjectMeta: objectMeta("bob-1", nil),
			Spec:   v1alpha1.SyncStatusSpec{Type: v1alpha1.SyncTypeEnvironment, Subject: v1alpha1.SyncSubject{Name: "bob"}},
			Status: v1alpha1.SyncRecord{State: v1alpha1.SyncStateConflicted, Error: &v1alpha1.SyncError{Message: strings.Repeat("2 fields ", 20)}},
		}},
	}
	answers := map[string]any{
		alicePath + "/sync": syncAnswer(begun), ofTeams + "environments/bob/sync": syncAnswer(v1alpha1.RequestOutcome{SyncStatuses: []string{"bob-1"}}),
		ofTeams + "environments/carol/sync": apierrors.NewForbidden(v1alpha1.Resource("environments"), "carol", errors.New("no")).Status(),
	}
	s := serveRequests(t, lives, answers)
	out, progress, code, err := s.in(t, "sync", "-l", "team=a")
	want := `NAME                STATE                                                RECORD
environment/alice   Synced                                               alice-b4d9q
environment/bob     Conflict: 2 fields 2 fields 2 fields 2 fields 2...   bob-1
environment/carol   environments.configbutler.ai "carol" is forbidd...   
`
	if diff := cmp.Diff(want, out); diff != "" || code != 5 || progress != syncNotice {
		t.Errorf("exit code %d, progress %q, printed (-want +got):\n%s", code, progress, diff)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "2 of 3 syncs did not succeed, such as: environments.configbutler.ai \"carol\" is forbidden") {
		t.Error(err)
	}
	for line := range strings.Lines(out) {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if _, _, code, err := s.in(t, "sync", "environments", "-l", "team=b"); code != 2 || !strings.Contains(err.Error(), "have the labels team=b") {
		t.Errorf("none selected: exit code %d: %v", code, err)
	}
	if out, _, code, err := s.in(t, "sync", "-l", "team=a,team notin (b)", "--wait=false", "-o", "name"); code != 5 ||
		out != "syncrequest.configbutler.ai/alice\nsyncrequest.configbutler.ai/alice\n" {
		t.Errorf("names: exit code %d, %v, printed %q", code, err, out)
	}
}

// TestSyncIsInterrupted ends the wait for the record and that for the response.
func TestSyncIsInterrupted(t *testing.T) {
	for name, tt := range map[string]struct{ path, want string }{
		"record":   {recordPath, "the sync continues, and kubectl get syncstatus alice-b4d9q -n teams --watch shows its progress"},
		"response": {alicePath + "/sync", "the server has not responded yet; kubectl get environments alice -n teams shows whether it has accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := serveRequests(t, map[string][]any{recordPath: recordLives(syncing)}, map[string]any{alicePath + "/sync": syncAnswer(begun)})
			handler := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == tt.path || r.URL.Query().Get("watch") != "" {
					_, _ = io.Copy(io.Discard, r.Body) // The end of the connection is noticed after that.
					cancel()
					<-r.Context().Done()
					return
				}
				handler.ServeHTTP(w, r)
			})
			_, _, code, err := s.call(ctx, "sync", "alice", "-n", "teams")
			if code != 130 || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("exit code %d: %v", code, err)
			}
		})
	}
}

func TestSyncOfOtherKinds(t *testing.T) {
	over := metav1.Now()
	half := v1alpha1.SyncProgress{ID: "r1", Types: 2, Compared: 1}
	full := v1alpha1.SyncProgress{ID: "r1", Types: 2, Compared: 2, FilesWritten: 3, CompletionTime: &over}
	broken := full
	broken.Failures = []string{"configmaps: no"}
	destination := func(syncs ...[]v1alpha1.SyncProgress) []any {
		var lives []any
		for _, each := range syncs {
			lives = append(lives, &v1alpha1.GitDestinationStatus{
				TypeMeta: typeMeta("GitDestinationStatus"), ObjectMeta: objectMeta("main", nil),
				Status: v1alpha1.GitDestinationRecord{State: "Comparing with the cluster", Syncs: each},
			})
		}
		return lives
	}
	catalog := func(pending ...v1alpha1.PendingCatalogSync) any {
		return &v1alpha1.AppCatalog{
			TypeMeta: typeMeta("AppCatalog"), ObjectMeta: objectMeta("shop", nil), Status: v1alpha1.AppCatalogStatus{PendingSyncs: pending, ObservedGeneration: 1},
		}
	}
	const mainPath, shopPath = ofTeams + "gitdestinations/main/sync", ofTeams + "appcatalogs/shop"
	mirror := &v1alpha1.MirrorSync{TypeMeta: typeMeta("MirrorSync"), Status: v1alpha1.MirrorSyncStatus{ID: "r1", Message: "The request is accepted"}}
	read := &v1alpha1.CatalogSync{TypeMeta: typeMeta("CatalogSync"), Status: v1alpha1.RequestOutcome{ID: "r1", Message: "The namespace has been read"}}
	const statusPath, destinationPath = ofTeams + "gitdestinationstatuses/main", ofTeams + "gitdestinations/main"
	waiting := func(ids ...string) []any {
		of := &v1alpha1.GitDestination{TypeMeta: typeMeta("GitDestination"), ObjectMeta: objectMeta("main", nil)}
		for _, id := range ids {
			of.Status.PendingSyncs = append(of.Status.PendingSyncs, v1alpha1.PendingSync{ID: id})
		}
		return []any{of}
	}
	tests := map[string]struct {
		args           []string
		lives          map[string][]any
		code           int
		out, request   string
		progress, fail string
	}{
		"destination": {
			args: []string{"gd/main", "--types", "configmaps,deployments.apps"},
			lives: map[string][]any{
				statusPath: destination(nil, []v1alpha1.SyncProgress{half}, []v1alpha1.SyncProgress{full}), destinationPath: waiting("r0", "r1"),
			},
			request: `"types":["configmaps","deployments.apps"]`, progress: "Comparing with the cluster\n",
			out: "gitdestination/main: Compared 2 of 2 types: 3 files written, 0 removed\n",
		},
		"destination that fails": {
			args: []string{"destination/main", "--full"}, lives: map[string][]any{statusPath: destination([]v1alpha1.SyncProgress{broken})},
			request: `"full":true`, code: 3, fail: "not all types could be compared",
			out:      "gitdestination/main: Compared 2 of 2 types: 3 files written, 0 removed; configmaps: no\n",
			progress: "Compared 2 of 2 types: 3 files written, 0 removed; configmaps: no\n",
		},
		"destination that takes long": {
			args: []string{"destination/main", "--timeout=300ms"}, lives: map[string][]any{statusPath: destination([]v1alpha1.SyncProgress{half})},
			code: 124, fail: "kubectl get gitdestinationstatuses main -n teams --watch",
			out:      "gitdestination/main: Compared 1 of 2 types: 0 files written, 0 removed\n",
			progress: "Compared 1 of 2 types: 0 files written, 0 removed\n",
		},
		"destination whose result is gone": {
			args: []string{"destination/main"}, code: 2, fail: "the result of this sync of gitdestination/main is no longer listed",
			lives: map[string][]any{
				statusPath: destination(nil, []v1alpha1.SyncProgress{{ID: "r9"}}), destinationPath: waiting("r9"),
			},
			out: "gitdestination/main: The request is accepted\n", progress: "Comparing with the cluster\n",
		},
		"destination that is deleted": {
			args: []string{"destination/main"}, code: 2, fail: `"main" not found`, lives: map[string][]any{statusPath: destination(nil)},
			out: "gitdestination/main: The request is accepted\n", progress: "Comparing with the cluster\n",
		},
		"catalog": {
			args: []string{"catalog/shop"}, lives: map[string][]any{shopPath: {catalog()}, recordPath: recordLives(completed)},
			out: "catalog/shop: The namespace has been read\n",
		},
		"catalog that waits": {
			args:  []string{"cat/shop"},
			lives: map[string][]any{shopPath: {catalog(v1alpha1.PendingCatalogSync{ID: "r1"}), catalog()}, recordPath: recordLives(completed)},
			out:   "catalog/shop: Not looked at yet\n", progress: "Not looked at yet\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := serveRequests(t, tt.lives, map[string]any{mainPath: mirror, shopPath + "/sync": read})
			out, progress, code, err := s.in(t, append([]string{"sync"}, tt.args...)...)
			_, said, _ := strings.Cut(progress, "\n") // The first line is about the wait.
			if code != tt.code || (err == nil) != (tt.fail == "") || err != nil && !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("exit code %d: %v", code, err)
			}
			if out != tt.out || !printed(said, tt.progress) || len(s.writes) != 1 || !strings.Contains(s.writes[0], tt.request) {
				t.Errorf("printed %q and %q, requested %q", out, progress, s.writes)
			}
		})
	}
}

// TestProgressIsPrintable checks that what the server says moves no cursor.
func TestProgressIsPrintable(t *testing.T) {
	s := serveRequests(t, map[string][]any{
		recordPath: recordLives(v1alpha1.SyncRecord{State: v1alpha1.SyncStateCompleted, Warnings: []string{"a\x1b[2Jb"}}),
	}, map[string]any{alicePath + "/sync": syncAnswer(begun)})
	if _, progress, _, err := s.in(t, "sync", "alice"); err != nil || progress != `Warning: a\u001b[2Jb`+"\n" && progress != `Warning: a\x1b[2Jb`+"\n" {
		t.Errorf("%v, printed %q", err, progress)
	}
}
