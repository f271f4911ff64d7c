// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
)

// readReady finds a trouble in Ready while it is False. While it is Unknown, the announced trouble stays.
func readReady(conditions []metav1.Condition, before controllerevents.Troubles) controllerevents.Troubles {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Status == metav1.ConditionTrue:
		return controllerevents.Troubles{}
	case ready.Status == metav1.ConditionUnknown:
		return before
	}
	return controllerevents.Troubles{v1alpha1.ConditionReady: ready.Reason}
}

func ready(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
}

func destination(uid types.UID) *v1alpha1.GitDestination {
	return &v1alpha1.GitDestination{ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: string(uid), UID: uid}}
}

func TestTroublesAreAnnouncedOnce(t *testing.T) {
	fine := ready(metav1.ConditionTrue, "Succeeded", "fine")
	lost := ready(metav1.ConditionFalse, "Lost", "gone")
	unknown := ready(metav1.ConditionUnknown, "Progressing", "")
	recorder := record.NewFakeRecorder(10)
	a := controllerevents.New(recorder, readReady)
	a.Announce(destination("a"), fine, lost)
	a.Announce(destination("a"), lost, lost)
	a.Announce(destination("b"), fine, lost)
	a.Announce(destination("a"), lost, unknown)
	a.Announce(destination("a"), unknown, lost)
	a.Announce(destination("a"), lost, fine)
	a.Announce(destination("c"), lost, lost) // An earlier process has announced it.
	a.Announce(destination("c"), lost, fine)
	want := []string{
		"Warning Lost gone", "Warning Lost gone", "Normal Recovered No longer Lost: fine", "Normal Recovered No longer Lost: fine",
	}
	if got := recorded(recorder); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDeletedObjectsAreForgotten(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	a := controllerevents.New(recorder, readReady)
	lost := ready(metav1.ConditionFalse, "Lost", "gone")
	for _, deleted := range []any{destination("a"), cache.DeletedFinalStateUnknown{Obj: destination("a")}} {
		a.Announce(destination("a"), nil, lost)
		a.Forget(deleted)
	}
	if got := recorded(recorder); len(got) != 2 {
		t.Errorf("got %q, want the same twice", got)
	}
}

func recorded(recorder *record.FakeRecorder) (events []string) {
	close(recorder.Events)
	for event := range recorder.Events {
		events = append(events, event)
	}
	return events
}
