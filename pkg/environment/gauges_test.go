// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

func TestPromptsAreCounted(t *testing.T) {
	of := func(status metav1.ConditionStatus, reason string, since time.Time) *v1alpha1.Environment {
		e := environmenttest.Environment()
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionCatalogUpToDate, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since),
		})
		return e
	}
	yesterday := noon.Add(-24 * time.Hour)
	for name, test := range map[string]struct {
		environment *v1alpha1.Environment
		nothing     bool
		want        prompts
	}{
		"what is older":           {of(metav1.ConditionFalse, v1alpha1.ReasonWorkloadsChanged, yesterday), false, prompts{2, yesterday}},
		"what is newer":           {of(metav1.ConditionFalse, v1alpha1.ReasonWorkloadsChanged, noon.Add(time.Hour)), false, prompts{2, noon}},
		"what was dismissed":      {of(metav1.ConditionFalse, v1alpha1.ReasonDismissed, yesterday), false, prompts{1, noon}},
		"what a pin keeps away":   {of(metav1.ConditionFalse, v1alpha1.ReasonPinned, yesterday), false, prompts{1, noon}},
		"what is up to date":      {of(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, yesterday), false, prompts{1, noon}},
		"what is not known":       {of(metav1.ConditionUnknown, v1alpha1.ReasonProgressing, yesterday), false, prompts{1, noon}},
		"nothing that is offered": {of(metav1.ConditionFalse, v1alpha1.ReasonNeverSynced, yesterday), true, prompts{1, noon}},
		"no condition yet":        {environmenttest.Environment(), false, prompts{1, noon}},
	} {
		t.Run(name, func(t *testing.T) {
			var got prompts
			got.add(of(metav1.ConditionFalse, v1alpha1.ReasonWorkloadsChanged, noon), v1alpha1.ConditionCatalogUpToDate, true)
			got.add(test.environment, v1alpha1.ConditionCatalogUpToDate, !test.nothing)
			if got.count != test.want.count || !got.oldest.Equal(test.want.oldest) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
