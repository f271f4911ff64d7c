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

// Catalog returns the state of a catalog: what prevents it from being ready, or else why changes of its source are not processed, whether
// it offers anything, and how many workloads are missing in the source or were never seen there.
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
	if sentence == "" {
		sentence = catalogOffer(c)
	}
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

// catalogOffer returns whether a catalog that follows its source offers anything, and how many named workloads were never seen.
func catalogOffer(c *v1alpha1.AppCatalog) string {
	offer, unseen := "Up to date", len(NeverSeen(c))
	if len(c.Status.Workloads) == 0 {
		offer = "Nothing offered"
	}
	switch {
	case unseen > 0:
		return fmt.Sprintf("%s, %d never seen", offer, unseen)
	case len(c.Status.Workloads) == 0:
		return offer + ", the selector matches nothing"
	}
	return offer
}

// NeverSeen returns the workloads that the spec of a catalog names and the catalog does not hold, as in Deployment web.
func NeverSeen(c *v1alpha1.AppCatalog) []string {
	known := map[v1alpha1.WorkloadReference]bool{}
	for _, entry := range c.Status.Workloads {
		known[v1alpha1.WorkloadReference{Kind: entry.Kind, Name: entry.Name}] = true
	}
	var names []string
	for _, named := range c.Spec.Workloads {
		if !known[named] {
			names = append(names, fmt.Sprintf("%s %s", named.Kind, named.Name))
		}
	}
	return names
}

// catalogPause returns why changes of the source are not processed, empty if they are.
func catalogPause(spec *v1alpha1.AppCatalogSpec, conditions []metav1.Condition) string {
	paused := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionPaused)
	switch {
	case paused == nil || paused.Status != metav1.ConditionTrue:
		return ""
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
