// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
)

func TestTroublesOfReady(t *testing.T) {
	reasons := controllerevents.ReadyReasons{Keep: []string{v1alpha1.ReasonExpired}, Ignore: []string{v1alpha1.ReasonSuspended}}
	none := controllerevents.Troubles{}
	lost, failed := controllerevents.Troubles{"Ready": "Lost"}, controllerevents.Troubles{"Ready": "Failed"}
	for name, test := range map[string]struct {
		conditions   []metav1.Condition
		before, want controllerevents.Troubles
	}{
		"no condition":                {nil, lost, none},
		"ready":                       {ready(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, ""), lost, none},
		"unknown":                     {ready(metav1.ConditionUnknown, v1alpha1.ReasonProgressing, ""), lost, none},
		"a problem":                   {ready(metav1.ConditionFalse, "Failed", ""), nil, failed},
		"another problem":             {ready(metav1.ConditionFalse, "Failed", ""), lost, failed},
		"progressing":                 {ready(metav1.ConditionFalse, v1alpha1.ReasonProgressing, ""), none, none},
		"progressing after a problem": {ready(metav1.ConditionFalse, v1alpha1.ReasonProgressing, ""), lost, lost},
		"progressing after a problem of another condition": {
			ready(metav1.ConditionFalse, v1alpha1.ReasonProgressing, ""), controllerevents.Troubles{"Held": "Full"}, none,
		},
		"kept":    {ready(metav1.ConditionFalse, v1alpha1.ReasonExpired, ""), lost, lost},
		"ignored": {ready(metav1.ConditionFalse, v1alpha1.ReasonSuspended, ""), lost, none},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reasons.Troubles(test.conditions, test.before); got == nil || !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
