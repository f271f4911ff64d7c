// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// catalogState returns a catalog's state as one line: what prevents it from being ready, or else what holds back
// changes of its source, and what is missing in the source.
func catalogState(o *configbutler.AppCatalog) string {
	status := &o.Status
	if ready := readyCondition(status.Conditions); ready.Status != metav1.ConditionTrue {
		return unreadyState(ready)
	}
	if o.Generation != status.ObservedGeneration {
		return editState(status.PendingEdits)
	}
	sentence := pauseState(&o.Spec, status.Conditions)
	if n := missingFrom(status.Workloads); n > 0 {
		sentence += fmt.Sprintf(", %d missing", n)
	}
	return sentence
}

// unreadyState returns the message of a condition on one line.
func unreadyState(ready metav1.Condition) string {
	if ready.Message == "" {
		return "Not looked at yet"
	}
	return strings.Join(strings.Fields(ready.Message), " ")
}

// editState returns the state of a catalog whose spec has an unprocessed change.
func editState(pending []configbutler.CatalogEdit) string {
	if len(pending) == 0 {
		return "Taking over a change of the spec"
	}
	return "Taking over a change by " + pending[len(pending)-1].Actor
}

// pauseState returns why changes of the source are not processed, if they are not.
func pauseState(spec *configbutler.AppCatalogSpec, conditions []metav1.Condition) string {
	paused := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionPaused)
	switch {
	case paused == nil || paused.Status != metav1.ConditionTrue:
		return "Up to date"
	case paused.Reason == v1alpha1.ReasonPinned && spec.PinnedRevision != nil:
		return fmt.Sprintf("Pinned at what revision %d was", *spec.PinnedRevision)
	case paused.Reason == v1alpha1.ReasonPreviewOnly:
		return "Changes are only recorded"
	case spec.PauseUntil != nil && (paused.Reason == v1alpha1.ReasonPauseUntil || paused.Reason == v1alpha1.ReasonPinned):
		return "Paused until " + spec.PauseUntil.UTC().Format(time.RFC3339)
	}
	return "Paused"
}

// missingFrom counts the workloads that are missing in the source.
func missingFrom(entries []configbutler.CatalogEntry) int {
	missing := 0
	for _, entry := range entries {
		if entry.Missing {
			missing++
		}
	}
	return missing
}
