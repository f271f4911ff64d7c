// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Catalog returns the state of a catalog: what prevents it from being ready, or else why changes of its source are not processed, and how
// many workloads are missing in the source.
func Catalog(c *v1alpha1.AppCatalog) string {
	status := &c.Status
	ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Status != metav1.ConditionTrue && ready.Message == "":
		return "Not looked at yet"
	case ready.Status != metav1.ConditionTrue:
		return Line(ready.Message)
	case c.Generation != status.ObservedGeneration:
		return catalogEdit(status.PendingEdits)
	}
	sentence := catalogPause(&c.Spec, status.Conditions)
	if n := missingWorkloads(status.Workloads); n > 0 {
		sentence += fmt.Sprintf(", %d missing", n)
	}
	return sentence
}

// catalogEdit returns the state of a catalog whose spec has not been processed yet.
func catalogEdit(edits []v1alpha1.CatalogEdit) string {
	if len(edits) == 0 {
		return "Taking over a change of the spec"
	}
	return "Taking over a change by " + edits[len(edits)-1].Actor
}

// catalogPause returns why changes of the source are not processed, if they are not.
func catalogPause(spec *v1alpha1.AppCatalogSpec, conditions []metav1.Condition) string {
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

// missingWorkloads counts the workloads that are missing in the source.
func missingWorkloads(entries []v1alpha1.CatalogEntry) int {
	missing := 0
	for _, entry := range entries {
		if entry.Missing {
			missing++
		}
	}
	return missing
}
