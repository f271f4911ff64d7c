// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	syncstatussummary "github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// deletedInSource is the start of messages that list deleted workloads.
const deletedInSource = "Not in the source any more, and kept until an editor takes them out: "

// previewed is the reason why a preview does not offer what its source has.
var previewed = conditions.Reason{
	Code: v1alpha1.ReasonPreviewOnly, Message: "Changes of the source are recorded and not taken over",
}

// pausedBy returns why the spec prevents that source changes are applied. It returns the zero value if they are applied.
func pausedBy(spec *v1alpha1.AppCatalogSpec, now time.Time) conditions.Reason {
	switch {
	case spec.PinnedRevision != nil:
		return conditions.Reason{Code: v1alpha1.ReasonPinned,
			Message: fmt.Sprintf("Changes of the source wait: spec.pinnedRevision is %d", *spec.PinnedRevision)}
	case spec.PauseUntil != nil && spec.PauseUntil.After(now):
		return conditions.Reason{Code: v1alpha1.ReasonPauseUntil,
			Message: "Changes of the source wait until " + spec.PauseUntil.UTC().Format(time.RFC3339)}
	}
	return conditions.Reason{}
}

// setConditions sets the conditions of a catalog from its spec and status. source is why the source cannot be read, and failure why the
// spec could not be applied.
func setConditions(catalog *v1alpha1.AppCatalog, source, failure conditions.Reason, now time.Time) {
	set := conditions.For(&catalog.Status.Conditions, catalog.Status.ObservedGeneration, now)
	source = keepReported(source, catalog)
	setPaused(set, catalog, now)
	problem := notReady(catalog, source, failure)
	setMissing(set, catalog, notApplied(catalog, problem, now))
	set.Good(v1alpha1.ConditionSourceReachable, source,
		conditions.Reason{Code: v1alpha1.ReasonSourceFollowed, Message: "The source is followed"})
	set.Ready(problem, conditions.Reason{Code: v1alpha1.ReasonSucceeded, Message: readyMessage(catalog)}, problem.Code, stalls(problem.Code))
}

// setPaused sets the condition Paused. Its reason decides how the next edit is applied (see unpinned), so it is not changed until that
// edit has been applied.
func setPaused(set *conditions.Setter, catalog *v1alpha1.AppCatalog, now time.Time) {
	notPaused := conditions.Reason{Code: v1alpha1.ReasonNotPaused, Message: "The spec neither pauses nor pins the catalog"}
	paused := pausedBy(&catalog.Spec, now)
	if paused.IsZero() && catalog.Spec.PreviewOnly {
		paused = previewed
	}
	switch {
	case unpinned(catalog) && !specChanged(catalog) && paused.Code == v1alpha1.ReasonPauseUntil:
		set.Problem(v1alpha1.ConditionPaused, conditions.Reason{Code: v1alpha1.ReasonPinned, Message: paused.Message}, notPaused)
	case unpinned(catalog):
	case !specChanged(catalog), meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionPaused) == nil:
		set.Problem(v1alpha1.ConditionPaused, paused, notPaused)
	}
}

// keepReported returns the state of the source. While its watches are being opened, such as after a restart, it returns the state that
// the status already reports.
func keepReported(source conditions.Reason, catalog *v1alpha1.AppCatalog) conditions.Reason {
	reported := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionSourceReachable)
	switch {
	case source.Code != v1alpha1.ReasonProgressing || reported == nil:
		return source
	case reported.Status == metav1.ConditionTrue:
		return conditions.Reason{}
	}
	return conditions.Reason{Code: reported.Reason, Message: reported.Message}
}

// notReady returns why a catalog does not offer what its spec selects.
func notReady(catalog *v1alpha1.AppCatalog, source, failure conditions.Reason) conditions.Reason {
	switch {
	case !failure.IsZero():
		return failure
	case !source.IsZero():
		return source
	case catalog.Status.ObservedGeneration == 0:
		return conditions.Progressing("The source is being read")
	}
	return conditions.Reason{}
}

// readyMessage returns the message of Ready while it is True.
func readyMessage(catalog *v1alpha1.AppCatalog) string {
	if len(catalog.Status.Workloads) == 0 {
		return "The catalog offers no workload; the conditions WorkloadsMissing and Paused say why"
	}
	message := "The catalog offers what its spec says"
	if unused := unusedPatches(catalog); len(unused) > 0 {
		message += "; no workload that it offers has the kind, group and name of the target of " + syncstatussummary.List(unused)
	}
	return message
}

// unusedPatches returns the paths of the patches whose target selects no workload of a catalog by group, kind and name. The status does not
// have the labels of workloads.
func unusedPatches(catalog *v1alpha1.AppCatalog) (paths []string) {
	groups := v1alpha1.WorkloadResources()
	for i, patch := range catalog.Spec.Patches {
		target := patch.Target
		used := slices.ContainsFunc(catalog.Status.Workloads, func(entry v1alpha1.CatalogEntry) bool {
			return target.Kind == string(entry.Kind) && (target.Name == "" || target.Name == entry.Name) &&
				(target.Group == nil || *target.Group == groups[entry.Kind].Group)
		})
		if !used {
			paths = append(paths, fmt.Sprintf("spec.patches[%d]", i))
		}
	}
	return paths
}

// notApplied returns why the workloads of a catalog are not those that its spec selects in the source now, zero if they are. problem is
// why the catalog is not ready.
func notApplied(catalog *v1alpha1.AppCatalog, problem conditions.Reason, now time.Time) conditions.Reason {
	switch paused := pausedBy(&catalog.Spec, now); {
	case !problem.IsZero():
		return problem
	case !paused.IsZero():
		return paused
	case catalog.Spec.PreviewOnly:
		return previewed
	case hasPendingEdit(catalog):
		return conditions.Progressing("The source is being read")
	}
	return conditions.Reason{}
}

// setMissing sets the condition WorkloadsMissing. unknown is why workloads that the catalog does not hold may exist in the source, zero if
// they do not. While it is unknown, the condition keeps reporting what was never seen.
func setMissing(set *conditions.Setter, catalog *v1alpha1.AppCatalog, unknown conditions.Reason) {
	const kind = v1alpha1.ConditionWorkloadsMissing
	reported := meta.FindStatusCondition(catalog.Status.Conditions, kind)
	missing, unseen := deletedIn(catalog), unseenBy(catalog)
	switch {
	case missing.IsZero() && !unseen.IsZero() && !unknown.IsZero():
		if reported == nil || reported.Reason != v1alpha1.ReasonNeverSeen {
			set.Set(kind, metav1.ConditionUnknown, unknown)
		}
		return
	case missing.IsZero():
		missing = unseen
	}
	set.Problem(kind, missing,
		conditions.Reason{Code: v1alpha1.ReasonNothingMissing, Message: "The source has the workloads of the catalog"})
}

// deletedIn returns which workloads of a catalog do not exist in the source any more, zero if all exist.
func deletedIn(catalog *v1alpha1.AppCatalog) conditions.Reason {
	var deleted []string
	for _, entry := range catalog.Status.Workloads {
		if entry.Missing {
			deleted = append(deleted, fmt.Sprintf("%s %s", entry.Kind, entry.Name))
		}
	}
	if len(deleted) == 0 {
		return conditions.Reason{}
	}
	return conditions.Reason{Code: v1alpha1.ReasonDeletedInSource, Message: deletedInSource + syncstatussummary.List(deleted)}
}

// unseenBy returns what the spec of a catalog selects and the catalog does not hold, zero if there is nothing. A selector is expected to
// match something only if the catalog holds nothing.
func unseenBy(catalog *v1alpha1.AppCatalog) conditions.Reason {
	names := syncstatussummary.NeverSeen(catalog)
	switch {
	case len(names) > 0:
		return conditions.Reason{Code: v1alpha1.ReasonNeverSeen, Message: "Not in the source yet: " + syncstatussummary.List(names)}
	case len(catalog.Status.Workloads) == 0:
		return conditions.Reason{Code: v1alpha1.ReasonNeverSeen, Message: "spec.workloadSelector matches no workload of the source yet"}
	}
	return conditions.Reason{}
}

// stalls reports whether a user has to change something before the catalog can become ready.
func stalls(code string) bool {
	switch code {
	case "", v1alpha1.ReasonProgressing, v1alpha1.ReasonSourceUnreachable:
		return false
	}
	return true
}

// stalled reports whether the status of a catalog reports that its spec cannot be applied.
func stalled(catalog *v1alpha1.AppCatalog) bool {
	return meta.IsStatusConditionTrue(catalog.Status.Conditions, v1alpha1.ConditionStalled)
}
