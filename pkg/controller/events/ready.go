// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// ReadyReasons divides the reasons with which Ready is False. Progressing keeps the last problem, and reasons that are not listed are
// problems.
type ReadyReasons struct {
	// Keep are further reasons that keep the last problem, so that it has no second Event when it returns.
	Keep []string
	// Ignore are reasons that are no problem.
	Ignore []string
}

// Troubles returns the problem that Ready reports. before are the problems that have an Event.
func (r ReadyReasons) Troubles(conditions []metav1.Condition, before Troubles) Troubles {
	now := Troubles{}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Status != metav1.ConditionFalse || slices.Contains(r.Ignore, ready.Reason):
	case ready.Reason == v1alpha1.ReasonProgressing || slices.Contains(r.Keep, ready.Reason):
		if reason, ok := before[ready.Type]; ok {
			now[ready.Type] = reason
		}
	default:
		now[ready.Type] = ready.Reason
	}
	return now
}
