// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// TestConditions has only the conditions that differ from the defaults in want, by type.
func TestConditions(t *testing.T) {
	defaults := map[string]string{
		v1alpha1.ConditionReady: "True Succeeded", v1alpha1.ConditionSourceReachable: "True SourceFollowed",
		v1alpha1.ConditionPaused: "False NotPaused", v1alpha1.ConditionWorkloadsMissing: "False NothingMissing",
	}
	later := metav1.NewTime(noon.Add(time.Hour))
	for name, test := range map[string]struct {
		change          func(*v1alpha1.AppCatalog)
		source, failure conditions.Reason
		want            map[string]string
	}{
		"defaults": {},
		"new": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Status = v1alpha1.AppCatalogStatus{} },
			want: map[string]string{
				v1alpha1.ConditionReady: "False Progressing", v1alpha1.ConditionReconciling: "True Progressing",
				v1alpha1.ConditionWorkloadsMissing: "Unknown Progressing",
			},
		},
		"source does not exist": {source: conditions.Reason{Code: v1alpha1.ReasonSourceNotFound, Message: ""}, want: map[string]string{
			v1alpha1.ConditionReady: "False SourceNotFound", v1alpha1.ConditionSourceReachable: "False SourceNotFound",
			v1alpha1.ConditionStalled: "True SourceNotFound",
		}},
		"unreachable": {source: conditions.Reason{Code: v1alpha1.ReasonSourceUnreachable, Message: ""}, want: map[string]string{
			v1alpha1.ConditionReady: "False SourceUnreachable", v1alpha1.ConditionSourceReachable: "False SourceUnreachable",
		}},
		"new, and not watched yet": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Status = v1alpha1.AppCatalogStatus{} },
			source: conditions.Reason{Code: v1alpha1.ReasonProgressing, Message: ""}, want: map[string]string{
				v1alpha1.ConditionReady: "False Progressing", v1alpha1.ConditionReconciling: "True Progressing",
				v1alpha1.ConditionSourceReachable: "False Progressing", v1alpha1.ConditionWorkloadsMissing: "Unknown Progressing",
			},
		},
		"not watched again yet": {
			change: func(catalog *v1alpha1.AppCatalog) {
				setConditions(catalog, conditions.Reason{}, conditions.Reason{}, noon)
			},
			source: conditions.Reason{Code: v1alpha1.ReasonProgressing, Message: ""},
		},
		"not watched again yet, and unreachable before": {
			change: func(catalog *v1alpha1.AppCatalog) {
				setConditions(catalog, conditions.Reason{Code: v1alpha1.ReasonSourceUnreachable, Message: ""}, conditions.Reason{}, noon)
			},
			source: conditions.Reason{Code: v1alpha1.ReasonProgressing, Message: ""}, want: map[string]string{
				v1alpha1.ConditionReady: "False SourceUnreachable", v1alpha1.ConditionSourceReachable: "False SourceUnreachable",
			},
		},
		"failing patch": {failure: conditions.Reason{Code: v1alpha1.ReasonPatchFailed, Message: ""}, want: map[string]string{
			v1alpha1.ConditionReady: "False PatchFailed", v1alpha1.ConditionStalled: "True PatchFailed",
		}},
		"deleted": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Status.Workloads[0].Missing = true },
			want:   map[string]string{v1alpha1.ConditionWorkloadsMissing: "True DeletedInSource"},
		},
		"never seen": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.Workloads = append(catalog.Spec.Workloads, workload("db"))
			},
			want: map[string]string{v1alpha1.ConditionWorkloadsMissing: "True NeverSeen"},
		},
		"never seen, and no revision": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Status = v1alpha1.AppCatalogStatus{ObservedGeneration: 1}
			},
			want: map[string]string{v1alpha1.ConditionWorkloadsMissing: "True NeverSeen"},
		},
		"a selector that matches nothing": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.Workloads, catalog.Spec.WorkloadSelector = nil, &metav1.LabelSelector{}
				catalog.Status = v1alpha1.AppCatalogStatus{ObservedGeneration: 1}
			},
			want: map[string]string{v1alpha1.ConditionWorkloadsMissing: "True NeverSeen"},
		},
		"a preview without a revision": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.PreviewOnly = true
				catalog.Status = v1alpha1.AppCatalogStatus{ObservedGeneration: 1}
			},
			want: map[string]string{
				v1alpha1.ConditionPaused: "True PreviewOnly", v1alpha1.ConditionWorkloadsMissing: "Unknown PreviewOnly",
			},
		},
		"named while pinned": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.PinnedRevision = new(int64(1))
				catalog.Spec.Workloads = append(catalog.Spec.Workloads, workload("db"))
			},
			want: map[string]string{v1alpha1.ConditionPaused: "True Pinned", v1alpha1.ConditionWorkloadsMissing: "Unknown Pinned"},
		},
		"pinned after it was never seen": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Spec.Workloads = append(catalog.Spec.Workloads, workload("db"))
				setConditions(catalog, conditions.Reason{}, conditions.Reason{}, noon)
				catalog.Spec.PinnedRevision = new(int64(1))
			},
			want: map[string]string{v1alpha1.ConditionPaused: "True Pinned", v1alpha1.ConditionWorkloadsMissing: "True NeverSeen"},
		},
		"named by an edit that is not applied yet": {
			change: func(catalog *v1alpha1.AppCatalog) {
				catalog.Generation++
				catalog.Spec.Workloads = append(catalog.Spec.Workloads, workload("db"))
			},
			want: map[string]string{v1alpha1.ConditionWorkloadsMissing: "Unknown Progressing"},
		},
		"paused": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PauseUntil = &later },
			want:   map[string]string{v1alpha1.ConditionPaused: "True PauseUntil"},
		},
		"a pause that has ended": {change: func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PauseUntil = new(metav1.NewTime(noon)) }},
		"pinned": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PinnedRevision = new(int64(1)) },
			want:   map[string]string{v1alpha1.ConditionPaused: "True Pinned"},
		},
		"preview": {
			change: func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true },
			want:   map[string]string{v1alpha1.ConditionPaused: "True PreviewOnly"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t)
			w.catalog.Status.ObservedGeneration, w.catalog.Status.PendingEdits = 1, nil
			if test.change != nil {
				test.change(w.catalog)
			}
			setConditions(w.catalog, test.source, test.failure, noon)
			for _, reported := range w.catalog.Status.Conditions {
				want, ok := test.want[reported.Type]
				if !ok {
					want = defaults[reported.Type]
				}
				if got := string(reported.Status) + " " + reported.Reason; got != want {
					t.Errorf("condition %s = %s, want %s", reported.Type, got, want)
				}
			}
			for kind := range test.want {
				if meta.FindStatusCondition(w.catalog.Status.Conditions, kind) == nil {
					t.Errorf("condition %s does not exist", kind)
				}
			}
		})
	}
}

func TestConditionsListALimitedNumberOfWorkloads(t *testing.T) {
	w := newSimulation(t)
	for _, letter := range "abcdefghijklmnopqrstuvwxy" {
		w.catalog.Spec.Workloads = append(w.catalog.Spec.Workloads, workload(string(letter)))
	}
	w.catalog.Status.ObservedGeneration, w.catalog.Status.PendingEdits = 1, nil
	setConditions(w.catalog, conditions.Reason{}, conditions.Reason{}, noon)
	message := meta.FindStatusCondition(w.catalog.Status.Conditions, v1alpha1.ConditionWorkloadsMissing).Message
	if !strings.HasSuffix(message, "Deployment t and 5 more") {
		t.Error(message)
	}
}

func TestReadyNamesUnusedPatches(t *testing.T) {
	const fine = "The catalog offers what its spec says"
	for name, test := range map[string]struct {
		target v1alpha1.PatchTarget
		unused bool
	}{
		"by kind":          {v1alpha1.PatchTarget{Kind: "Deployment"}, false},
		"by name":          {v1alpha1.PatchTarget{Kind: "Deployment", Name: "api", Group: new("apps")}, false},
		"another kind":     {v1alpha1.PatchTarget{Kind: "StatefulSet"}, true},
		"another name":     {v1alpha1.PatchTarget{Kind: "Deployment", Name: "apii"}, true},
		"another group":    {v1alpha1.PatchTarget{Kind: "Deployment", Group: new("batch")}, true},
		"labels, not seen": {v1alpha1.PatchTarget{Kind: "Deployment", LabelSelector: &metav1.LabelSelector{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSimulation(t)
			w.catalog.Status.ObservedGeneration = 1
			w.catalog.Spec.Patches = []v1alpha1.Patch{{Target: v1alpha1.PatchTarget{Kind: "Deployment"}}, {Target: test.target}}
			setConditions(w.catalog, conditions.Reason{}, conditions.Reason{}, noon)
			ready := meta.FindStatusCondition(w.catalog.Status.Conditions, v1alpha1.ConditionReady)
			want := fine
			if test.unused {
				want += "; no workload that it offers has the kind, group and name of the target of spec.patches[1]"
			}
			if ready.Status != metav1.ConditionTrue || ready.Message != want {
				t.Errorf("Ready is %+v, want the message %q", ready, want)
			}
		})
	}
}

func TestConditionsEscapeInvisibleCharacters(t *testing.T) {
	w := newSimulation(t)
	setConditions(w.catalog, conditions.Reason{Code: v1alpha1.ReasonSourceUnreachable, Message: "the source \u202esays\u200b"},
		conditions.Reason{}, noon)
	if got := meta.FindStatusCondition(w.catalog.Status.Conditions, v1alpha1.ConditionReady).Message; got != `the source \u202esays\u200b` {
		t.Errorf("message = %q", got)
	}
}

func TestHistoryLimit(t *testing.T) {
	catalog := appCatalog("shop", "api")
	catalog.Spec.HistoryLimit = new(int32(2))
	for range 4 {
		advance(catalog, nil, "shop-bcdfg", noon)
	}
	if history := catalog.Status.History; len(history) != 2 || history[0].Revision != 4 || history[1].Revision != 3 {
		t.Errorf("history = %+v", history)
	}
}
