// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestReady(t *testing.T) {
	fine := Reason{v1alpha1.ReasonSucceeded, "It works"}
	failed := Reasonf(v1alpha1.ReasonSyncFailed, "%d objects were refused", 2)
	for name, test := range map[string]struct {
		problem Reason
		// cause is the code of the problem if it is empty.
		cause   string
		stalled bool
		want    map[string]string
	}{
		"ready": {want: map[string]string{v1alpha1.ConditionReady: "True Succeeded It works"}},
		"progressing": {problem: Progressing("Waiting"), stalled: true, want: map[string]string{
			v1alpha1.ConditionReady:       "False Progressing Waiting",
			v1alpha1.ConditionReconciling: "True Progressing Waiting",
		}},
		"retried": {problem: failed, want: map[string]string{v1alpha1.ConditionReady: "False SyncFailed 2 objects were refused"}},
		"stalled": {problem: failed, stalled: true, want: map[string]string{
			v1alpha1.ConditionReady:   "False SyncFailed 2 objects were refused",
			v1alpha1.ConditionStalled: "True SyncFailed 2 objects were refused",
		}},
		"another object is progressing": {problem: failed, cause: v1alpha1.ReasonProgressing, stalled: true, want: map[string]string{
			v1alpha1.ConditionReady:       "False SyncFailed 2 objects were refused",
			v1alpha1.ConditionReconciling: "True SyncFailed 2 objects were refused",
		}},
		"another object is retried": {problem: failed, cause: v1alpha1.ReasonPushFailed, want: map[string]string{
			v1alpha1.ConditionReady: "False SyncFailed 2 objects were refused",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			// Both conditions of an earlier state must go unless they still apply.
			list := []metav1.Condition{{Type: v1alpha1.ConditionReconciling}, {Type: v1alpha1.ConditionStalled}}
			For(&list, 3, noon).Ready(test.problem, fine, cmp.Or(test.cause, test.problem.Code), test.stalled)
			got := map[string]string{}
			for _, c := range list {
				got[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
				if c.ObservedGeneration != 3 {
					t.Errorf("%s: observed generation %d, want 3", c.Type, c.ObservedGeneration)
				}
			}
			if !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTransitionTime(t *testing.T) {
	var list []metav1.Condition
	at := func() time.Time {
		return meta.FindStatusCondition(list, v1alpha1.ConditionHeld).LastTransitionTime.UTC()
	}
	held, free := Reason{v1alpha1.ReasonWindowClosed, "The window is closed"}, Reason{v1alpha1.ReasonNotHeld, "Nothing is held back"}
	For(&list, 1, noon).Problem(v1alpha1.ConditionHeld, held, free)
	held.Message = "The window is still closed"
	For(&list, 2, noon.Add(time.Minute)).Problem(v1alpha1.ConditionHeld, held, free)
	if !at().Equal(noon) {
		t.Errorf("the time changed with the message: %s, want %s", at(), noon)
	}
	For(&list, 2, noon.Add(time.Hour+time.Millisecond)).Problem(v1alpha1.ConditionHeld, Reason{}, free)
	if want := noon.Add(time.Hour); !at().Equal(want) {
		t.Errorf("the time of the change is %s, want %s in whole seconds", at(), want)
	}
}

func TestMessages(t *testing.T) {
	var list []metav1.Condition
	For(&list, 1, noon).Set(v1alpha1.ConditionReady, metav1.ConditionFalse, Reason{
		v1alpha1.ReasonSyncFailed, "a\u202eb" + strings.Repeat("x", 40_000),
	})
	message := list[0].Message
	if len(message) > 32_768 {
		t.Errorf("the message has %d bytes, more than the API accepts", len(message))
	}
	if strings.Contains(message, "\u202e") {
		t.Error("a character that changes the direction of the text is not escaped")
	}
}

func TestPrune(t *testing.T) {
	list := []metav1.Condition{{Type: "Old"}, {Type: "Kept"}, {Type: "Foreign"}}
	s := For(&list, 1, noon)
	s.Keep("Kept")
	s.Set("New", metav1.ConditionTrue, Reason{"Any", "any"})
	s.Prune("Old", "Kept", "New")
	var types []string
	for _, c := range list {
		types = append(types, c.Type)
	}
	if got := strings.Join(types, " "); got != "Kept Foreign New" {
		t.Errorf("got %q, want Kept, Foreign and New", got)
	}
}
