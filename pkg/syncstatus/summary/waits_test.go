// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// TestWaitsFor has what the spec decides; the tests of the conditions have the rest.
func TestWaitsFor(t *testing.T) {
	automatic := func(e envt) { e.Spec.AutoSync = true }
	shadow := func(e envt) { e.Spec.AutoSync, e.Spec.Shadow = true, true }
	because := func(condition, reason string) func(envt) {
		return func(e envt) {
			e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason})
		}
	}
	for name, test := range map[string]struct {
		with []func(envt)
		want string
	}{
		"changes by hand":               {[]func(envt){workloads(3)}, "you"},
		"changes of dependencies":       {[]func(envt){dependencies}, "you"},
		"automatic changes":             {[]func(envt){workloads(3), automatic}, "sync"},
		"a shadow":                      {[]func(envt){workloads(3), shadow}, "you"},
		"suspended by the policy":       {[]func(envt){workloads(3), automatic, because(v1alpha1.ConditionHeld, v1alpha1.ReasonSuspended)}, "policy"},
		"switched off during a retry":   {[]func(envt){workloads(3), because(v1alpha1.ConditionHeld, v1alpha1.ReasonSuspended)}, "you"},
		"a source that does not answer": {[]func(envt){because(v1alpha1.ConditionHeld, v1alpha1.ReasonUnreachable)}, "source"},
		"pinned dependencies":           {[]func(envt){dependencies, pinned}, "unpin"},
		"in sync":                       {[]func(envt){because(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)}, ""},
		"an edit":                       {[]func(envt){func(e envt) { e.Generation = 4 }}, "server"},
		"new":                           {[]func(envt){func(e envt) { e.Status = v1alpha1.EnvironmentStatus{} }}, "server"},
	} {
		t.Run(name, func(t *testing.T) {
			e := environment()
			for _, do := range test.with {
				do(e)
			}
			if got := summary.WaitsFor(e); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
