// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// outcomeOf is the response to a request.
func outcomeOf(message string, records ...string) v1alpha1.RequestOutcome {
	return v1alpha1.RequestOutcome{Accepted: true, Message: message, SyncStatuses: records}
}

// decisionServer has the environment alice, the catalog shop, the destination main, the pipeline index and a failed record.
func decisionServer(t *testing.T) *requestServer {
	t.Helper()
	at := metav1.NewTime(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))
	history := []v1alpha1.CatalogRevision{{Revision: 7, Time: at}, {Revision: 6, Time: at}}
	failed := recordLives(v1alpha1.SyncRecord{State: v1alpha1.SyncStateManualIntervention, DetectedAt: at}, completed)
	pinned := int64(6)
	lives := map[string][]any{
		alicePath:                       envtLives(v1alpha1.EnvironmentStatus{AppliedRevision: 7, History: history}),
		ofTeams + "environments/pinned": {&v1alpha1.Environment{TypeMeta: typeMeta("Environment"), ObjectMeta: objectMeta("pinned", map[string]string{"team": "a"}), Spec: v1alpha1.EnvironmentSpec{PinnedRevision: &pinned}}},
		ofTeams + "appcatalogs/shop": {&v1alpha1.AppCatalog{
			TypeMeta: typeMeta("AppCatalog"), ObjectMeta: objectMeta("shop", nil),
			Status: v1alpha1.AppCatalogStatus{Revision: 7, History: history[:1]},
		}},
		ofTeams + "gitdestinations/main": {&v1alpha1.GitDestination{TypeMeta: typeMeta("GitDestination"), ObjectMeta: objectMeta("main", nil)}},
		"/apis/configbutler.ai/v1alpha1/syncpipelines/index": {&v1alpha1.SyncPipeline{
			TypeMeta: typeMeta("SyncPipeline"), ObjectMeta: metav1.ObjectMeta{Name: "index"}, Spec: v1alpha1.SyncPipelineSpec{Suspend: true},
		}},
		ofTeams + "notificationsinks/chat": {&v1alpha1.NotificationSink{TypeMeta: typeMeta("NotificationSink"), ObjectMeta: objectMeta("chat", nil)}},
		recordPath:                         failed,
	}
	dismissal := &v1alpha1.Dismissal{TypeMeta: typeMeta("Dismissal"), ObjectMeta: objectMeta("alice", nil), Status: outcomeOf("Dismissed it")}
	rolledBack := &v1alpha1.Rollback{TypeMeta: typeMeta("Rollback"), Status: outcomeOf("It goes", "alice-b4d9q")}
	return serveRequests(t, lives, map[string]any{
		alicePath + "/dismiss":    dismissal,
		recordPath + "/dismiss":   dismissal,
		alicePath + "/undismiss":  &v1alpha1.Undismissal{TypeMeta: typeMeta("Undismissal"), Status: outcomeOf("Offered again")},
		alicePath + "/rediscover": &v1alpha1.Rediscovery{TypeMeta: typeMeta("Rediscovery"), Status: outcomeOf("Found anew", "alice-b4d9q")},
		recordPath + "/retry":     &v1alpha1.Retry{TypeMeta: typeMeta("Retry"), Status: outcomeOf("Attempt 2 is under way", "alice-b4d9q")},
		alicePath + "/rollback":   rolledBack, ofTeams + "appcatalogs/shop/rollback": rolledBack,
		ofTeams + "environments/pinned":                      lifeOf(lives, ofTeams+"environments/pinned"),
		ofTeams + "appcatalogs/shop":                         lifeOf(lives, ofTeams+"appcatalogs/shop"),
		ofTeams + "gitdestinations/main":                     lifeOf(lives, ofTeams+"gitdestinations/main"),
		ofTeams + "notificationsinks/chat":                   lifeOf(lives, ofTeams+"notificationsinks/chat"),
		"/apis/configbutler.ai/v1alpha1/syncpipelines/index": lifeOf(lives, "/apis/configbutler.ai/v1alpha1/syncpipelines/index"),
	})
}

// lifeOf returns the first state of an object, as the response to a patch.
func lifeOf(lives map[string][]any, path string) any { return lives[path][0] }

// TestDecisions runs each command that requests or sets something once, or with something that it refuses.
func TestDecisions(t *testing.T) {
	const patched = `{"spec":{"%s":%s}}`
	set := func(path, field, value string) string {
		return "PATCH " + path + "? " + strings.NewReplacer(`%s":%s`, field+`":`+value).Replace(patched)
	}
	tests := []struct {
		args string
		code int
		// out is the output, request the beginning of the request, and problem a part of the error.
		out, request, problem string
	}{
		{args: "dismiss alice", out: "environment/alice: Dismissed it\n", request: "POST environments/alice/dismiss? "},
		{args: "dismiss ss/alice-b4d9q", out: "syncstatus/alice-b4d9q: Dismissed it\n", request: "POST syncstatuses/alice-b4d9q/dismiss? "},
		{args: "dismiss alice --dry-run", out: "environment/alice: Dismissed it\n", request: "POST environments/alice/dismiss?All "},
		{args: "dismiss alice -o name", out: "dismissal.configbutler.ai/alice\n", request: "POST environments/alice/dismiss? "},
		{args: "dismiss catalog/shop", code: 2, problem: `"catalog" is no type of this command: it takes environment or syncstatus`},
		{args: "undismiss alice", out: "environment/alice: Offered again\n", request: "POST environments/alice/undismiss? "},
		{args: "rediscover alice", out: "environment/alice: Found anew\n", request: "POST environments/alice/rediscover? "},
		{args: "retry environment/alice --wait=false", out: "syncstatus/alice-b4d9q: Attempt 2 is under way\n", request: "POST syncstatuses/alice-b4d9q/retry? "},
		{args: "retry environment -l team=a --wait=false", out: "NAME                     STATE                    RECORD\n" +
			"syncstatus/alice-b4d9q   Attempt 2 is under way   alice-b4d9q\n", request: "POST syncstatuses/alice-b4d9q/retry? "},
		{args: "retry environment -l team=z", code: 2, problem: "no environments in the namespace teams have the labels team=z"},
		{args: "retry", code: 2, problem: "SYNCSTATUS or environment/NAME or catalog/NAME or TYPE -l SELECTOR is missing"},
		{args: "retry catalog/shop", code: 4, problem: "no SyncStatus of catalog/shop has failed, so nothing is left to try"},
		{args: "retry environment/zed", code: 2, problem: `environments.configbutler.ai "zed" not found`},
		{args: "retry other", code: 2, problem: "not found", request: "POST syncstatuses/other/retry? "},
		{
			args: "rollback alice --wait=false", out: "environment/alice: It goes\n",
			request: `POST environments/alice/rollback? {"kind":"Rollback","apiVersion":"configbutler.ai/v1alpha1","metadata":{},"spec":{"revision":6}`,
		},
		{
			args: "rollback catalog/shop --to 3 --wait=false", out: "catalog/shop: It goes\n",
			request: `POST appcatalogs/shop/rollback? {"kind":"Rollback","apiVersion":"configbutler.ai/v1alpha1","metadata":{},"spec":{"revision":3}`,
		},
		{args: "rollback catalog/shop", code: 4, problem: "status.history of catalog/shop has no revision beside the current one"},
		{args: "rollback alice --to -1", code: 2, problem: "--to is -1: it is a revision of status.history"},
		{args: "unpin pinned", out: "environment/pinned unpinned\n", request: set("environments/pinned", "pinnedRevision", "null")},
		{args: "unpin alice", out: "environment/alice was not pinned\n"},
		{
			args: "pause shop --until 2126-12-24T18:00:00+01:00", out: "catalog/shop paused until 2126-12-24T17:00:00Z\n",
			request: set("appcatalogs/shop", "pauseUntil", `"2126-12-24T17:00:00Z"`),
		},
		{args: "pause shop --until tomorrow", code: 2, problem: `--until is "tomorrow": it is a time such as`},
		{args: "pause shop --for -1h", code: 2, problem: "the pause would be over already"},
		{args: "pause shop --for 1h --until 2126-12-24T18:00:00Z", code: 2, problem: "none of the others can be"},
		{args: "resume catalog/shop", out: "catalog/shop was not paused\n"},
		{args: "suspend main", out: "gitdestination/main suspended\n", request: set("gitdestinations/main", "suspend", "true")},
		{args: "suspend main --dry-run", out: "gitdestination/main suspended (dry run)\n", request: "PATCH gitdestinations/main?All "},
		{args: "suspend main -o name", out: "gitdestination.configbutler.ai/main\n", request: set("gitdestinations/main", "suspend", "true")},
		{args: "suspend pipe/index", out: "syncpipeline/index is suspended already\n"},
		{
			args: "unsuspend pipeline/index", out: "syncpipeline/index no longer suspended\n",
			request: set("/apis/configbutler.ai/v1alpha1/syncpipelines/index", "suspend", "null"),
		},
		{args: "suspend sink/chat", out: "notificationsink/chat suspended\n", request: set("notificationsinks/chat", "suspend", "true")},
		{args: "suspend alien", code: 2, problem: "not found"},
		{
			args: "unpin -l team=a", out: "environment/alice was not pinned\nenvironment/pinned unpinned\n",
			request: set("environments/pinned", "pinnedRevision", "null"),
		},
		{
			args: "dismiss -l team=a", code: 2, out: "environment/alice: Dismissed it\n", request: "POST environments/alice/dismiss? ",
			problem: `1 of 2 failed, such as: environments.configbutler.ai "pinned" not found`,
		},
		{args: "suspend -l team=z", code: 2, problem: "no gitdestinations in the namespace teams have the labels team=z"},
		{args: "suspend pipe -l team=z", code: 2, problem: "no syncpipelines have the labels team=z"},
		{args: "unpin alice -l team=a", code: 2, problem: "give a name or -l SELECTOR, not both"},
		{args: "resume", code: 2, problem: "CATALOG or -l SELECTOR is missing"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			s := decisionServer(t)
			out, _, code, err := s.in(t, strings.Fields(tt.args)...)
			if code != tt.code || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("exit code %d: %v", code, err)
			}
			if out != tt.out {
				t.Errorf("printed %q, want %q", out, tt.out)
			}
			if got := strings.Join(s.writes, ""); (got == "") != (tt.request == "") || !strings.HasPrefix(got, tt.request) {
				t.Errorf("requested %q, want %q", got, tt.request)
			}
		})
	}
}

// TestRollbackSaysHowToGoForward waits for the record of a rollback, and then for that of a retry.
func TestRollbackSaysHowToGoForward(t *testing.T) {
	s := decisionServer(t)
	s.lives[recordPath] = recordLives(syncing, completed)
	out, progress, code, err := s.in(t, "rollback", "alice")
	want := "environment/alice: Went to what revision 6 was, and stays there until kubectl slipstream unpin alice -n teams (alice-b4d9q)\n"
	if err != nil || code != 0 || out != want || !strings.HasPrefix(progress, "From revision 7 to revision 6 of 2026-05-04T12:00:00Z\n"+syncNotice) {
		t.Errorf("exit code %d, %v, printed %q and %q", code, err, out, progress)
	}
	if out, _, code, err := s.in(t, "retry", "alice-b4d9q"); err != nil || code != 0 || out != "syncstatus/alice-b4d9q: Synced (alice-b4d9q)\n" {
		t.Errorf("retry: exit code %d, %v, printed %q", code, err, out)
	}
}
