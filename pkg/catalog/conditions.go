// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// deletedInSource begins what is said of workloads that have been deleted.
const deletedInSource = "Not in the source any more, and kept until an editor takes them out: "

// verdict is why something is not as it should be; the zero value says that it is.
type verdict struct{ reason, message string }

func (v verdict) ok() bool { return v.reason == "" }

// notPaused is said of a catalog whose changes do not wait.
var notPaused = verdict{v1alpha1.ReasonNotPaused, "The spec neither pauses nor pins the catalog"}

// waits says why changes of the source wait; the zero value says that they do not.
func waits(spec *v1alpha1.AppCatalogSpec, now time.Time) verdict {
	switch {
	case spec.PinnedRevision != nil:
		return verdict{v1alpha1.ReasonPinned,
			fmt.Sprintf("Changes of the source wait: spec.pinnedRevision is %d", *spec.PinnedRevision)}
	case spec.PauseUntil != nil && spec.PauseUntil.After(now):
		return verdict{v1alpha1.ReasonPauseUntil,
			"Changes of the source wait until " + spec.PauseUntil.UTC().Format(time.RFC3339)}
	}
	return verdict{}
}

// setConditions makes the conditions of a catalog those of its spec and status. source says how the source can be read, and
// trouble why the spec could not be followed.
func setConditions(catalog *v1alpha1.AppCatalog, source, trouble verdict, now time.Time) {
	set := conditionSet{&catalog.Status, now}
	source = asTold(source, catalog)
	paused := waits(&catalog.Spec, now)
	if paused.ok() && catalog.Spec.PreviewOnly {
		paused = verdict{v1alpha1.ReasonPreviewOnly, "Changes of the source are recorded and not taken over"}
	}
	// Whether the catalog was pinned says how an edit is taken over, so that stays until it has been.
	switch {
	case unpinned(catalog) && !edited(catalog) && paused.reason == v1alpha1.ReasonPauseUntil:
		set.flag(v1alpha1.ConditionPaused, verdict{v1alpha1.ReasonPinned, paused.message}, notPaused)
	case unpinned(catalog):
	case !edited(catalog), meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused) == nil:
		set.flag(v1alpha1.ConditionPaused, paused, notPaused)
	}
	set.flag(v1alpha1.ConditionWorkloadsMissing, missingIn(catalog),
		verdict{v1alpha1.ReasonNothingMissing, "The source has the workloads of the catalog"})
	set.good(v1alpha1.ConditionSourceReachable, source, verdict{v1alpha1.ReasonSourceFollowed, "The source is followed"})
	set.ready(readiness(catalog, source, trouble))
}

// asTold is how the source can be read, or what is told of it already while its watches are opened, as after a restart.
func asTold(source verdict, catalog *v1alpha1.AppCatalog) verdict {
	told := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionSourceReachable)
	switch {
	case source.reason != v1alpha1.ReasonProgressing || told == nil:
		return source
	case told.Status == metav1.ConditionTrue:
		return verdict{}
	}
	return verdict{told.Reason, told.Message}
}

// readiness says why a catalog does not offer what its spec wants.
func readiness(catalog *v1alpha1.AppCatalog, source, trouble verdict) verdict {
	switch {
	case !trouble.ok():
		return trouble
	case !source.ok():
		return source
	case catalog.Status.ObservedGeneration == 0:
		return verdict{v1alpha1.ReasonProgressing, "The source is being read"}
	}
	return verdict{}
}

// missingIn says which workloads of a catalog the source does not have.
func missingIn(catalog *v1alpha1.AppCatalog) verdict {
	known := map[reference]bool{}
	var deleted, never []string
	for _, entry := range catalog.Status.Workloads {
		known[reference{Kind: entry.Kind, Name: entry.Name}] = true
		if entry.Missing {
			deleted = append(deleted, fmt.Sprintf("%s %s", entry.Kind, entry.Name))
		}
	}
	for _, named := range catalog.Spec.Workloads {
		if !known[named] {
			never = append(never, fmt.Sprintf("%s %s", named.Kind, named.Name))
		}
	}
	switch {
	case len(deleted) > 0:
		return verdict{v1alpha1.ReasonDeletedInSource, deletedInSource + syncstatussummary.List(deleted)}
	case len(never) > 0 && catalog.Status.Revision > 0:
		return verdict{v1alpha1.ReasonNeverSeen, "Not in the source yet: " + syncstatussummary.List(never)}
	}
	return verdict{}
}

// conditionSet writes conditions that are about the observed generation.
type conditionSet struct {
	status *v1alpha1.AppCatalogStatus
	now    time.Time
}

func (s conditionSet) set(kind string, status bool, v verdict) {
	state := metav1.ConditionFalse
	if status {
		state = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: v.reason, Message: printable.Message(v.message),
		ObservedGeneration: s.status.ObservedGeneration, LastTransitionTime: *seconds(s.now),
	})
}

// flag sets a condition that is true while something is the matter, and false with otherwise.
func (s conditionSet) flag(kind string, v, otherwise verdict) {
	if v.ok() {
		s.set(kind, false, otherwise)
		return
	}
	s.set(kind, true, v)
}

// good sets a condition that is true with fine while nothing is the matter.
func (s conditionSet) good(kind string, v, fine verdict) {
	if v.ok() {
		s.set(kind, true, fine)
		return
	}
	s.set(kind, false, v)
}

// ready sets Ready and, in the way of kstatus, Reconciling or Stalled while they are true.
func (s conditionSet) ready(v verdict) {
	s.good(v1alpha1.ConditionReady, v, verdict{v1alpha1.ReasonSucceeded, "The catalog offers what its spec says"})
	s.only(v1alpha1.ConditionReconciling, v, v.reason == v1alpha1.ReasonProgressing)
	s.only(v1alpha1.ConditionStalled, v, stalls(v.reason))
}

// stalls says whether somebody has to change something before the catalog can be ready.
func stalls(reason string) bool {
	switch reason {
	case "", v1alpha1.ReasonProgressing, v1alpha1.ReasonSourceUnreachable:
		return false
	}
	return true
}

// stalled says whether a catalog has told that its spec cannot be followed.
func stalled(catalog *v1alpha1.AppCatalog) bool {
	return meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionStalled)
}

// only has a condition there while it is true.
func (s conditionSet) only(kind string, v verdict, there bool) {
	if there {
		s.set(kind, true, v)
		return
	}
	meta.RemoveStatusCondition(&s.status.Conditions, kind)
}
