// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

func appCatalogs() kind[*configbutler.AppCatalog, configbutler.AppCatalogSpec, configbutler.AppCatalogStatus] {
	type obj = *configbutler.AppCatalog
	return kind[obj, configbutler.AppCatalogSpec, configbutler.AppCatalogStatus]{
		plural: "appcatalogs", singular: "appcatalog", shortNames: []string{"cat"}, namespaced: true,
		newObject:             func() obj { return &configbutler.AppCatalog{} },
		newList:               func() runtime.Object { return &configbutler.AppCatalogList{} },
		spec:                  func(o obj) *configbutler.AppCatalogSpec { return &o.Spec },
		status:                func(o obj) *configbutler.AppCatalogStatus { return &o.Status },
		validate:              validation.ValidateAppCatalog,
		validateUpdate:        validation.ValidateAppCatalogUpdate,
		validateStatusUpdate:  validation.ValidateAppCatalogStatusUpdate,
		validateStatusRequest: validation.ValidateAppCatalogStatusRequest,
		edits:                 catalogEdits(),
		columns: []column[obj]{
			textColumn("Source", "The namespace whose workloads are followed.", func(o obj) string { return o.Spec.SourceNamespace }),
			numberColumn("Workloads", "Workloads on offer, missing ones included.", func(o obj) int64 { return int64(len(o.Status.Workloads)) }),
			numberColumn("Revision", "What is on offer now; 0 before anything is.", func(o obj) int64 { return o.Status.Revision }),
			agoColumn("Last-Sync", "Time since the revision was made.", func(o obj) *metav1.Time { return o.Status.LastSyncedAt }),
			textColumn("Ready", "Whether the catalog offers what its spec says.", func(o obj) string {
				return string(readyCondition(o.Status.Conditions).Status)
			}),
			stateColumn(catalogState),
			wide(textColumn("Reason", "Why it is ready or not, in one word.", func(o obj) string {
				return readyCondition(o.Status.Conditions).Reason
			})),
			wide(textColumn("Record", "The SyncStatus of the revision.", func(o obj) string { return o.Status.LatestSync })),
			wide(textColumn("Secrets", "Whose permission to read Secrets of the source counts.", func(o obj) string {
				return string(o.Spec.Secrets)
			})),
			ageColumn[obj](),
		},
	}
}

func catalogWorkloads() kind[*configbutler.CatalogWorkload, struct{}, configbutler.CatalogWorkloadRecord] {
	type obj = *configbutler.CatalogWorkload
	return kind[obj, struct{}, configbutler.CatalogWorkloadRecord]{
		plural: "catalogworkloads", singular: "catalogworkload", shortNames: []string{"cw"}, namespaced: true,
		newObject:      func() obj { return &configbutler.CatalogWorkload{} },
		newList:        func() runtime.Object { return &configbutler.CatalogWorkloadList{} },
		validate:       validation.ValidateCatalogWorkload,
		validateUpdate: validation.ValidateCatalogWorkloadUpdate,
		columns: []column[obj]{
			numberColumn("Revision", "The catalog's revision that last changed it.", func(o obj) int64 { return o.Status.Revision }),
			agoColumn("Captured", "Time since what is on offer was read from the source.", func(o obj) *metav1.Time { return o.Status.CapturedAt }),
			{name: "State", description: "Summary of the status, in a sentence.", cellType: text, cell: workloadState},
			wide(textColumn("Source", "The namespace of the workload.", func(o obj) string { return o.Status.Source.Namespace })),
			wide(textColumn("Hash", "Tells versions of what is on offer apart.", func(o obj) string { return o.Status.Hash })),
			ageColumn[obj](),
		},
	}
}

// workloadState returns the state of a catalog's workload, for tables.
func workloadState(o *configbutler.CatalogWorkload, now time.Time) any {
	status := &o.Status
	switch {
	case status.Missing && status.MissingSince == nil:
		return "Missing in the source"
	case status.Missing:
		return fmt.Sprintf("Missing in the source for %s", ago(status.MissingSince, now))
	case status.Manifest == nil:
		return "Offered, read from the source when needed"
	case status.Rendered != nil:
		return "Offered with patches"
	}
	return "Offered"
}

func syncPolicies() kind[*configbutler.SyncPolicy, configbutler.SyncPolicySpec, configbutler.SyncPolicyStatus] {
	type obj = *configbutler.SyncPolicy
	columns := []column[obj]{
		textColumn("Batch-Window", "How long changes of a source are gathered before they are recorded together.", func(o obj) string {
			return shortDuration(o.Spec.BatchWindow)
		}),
		textColumn("Retention", "How long records are kept.", func(o obj) string { return days(o.Spec.Retention.Days) }),
		numberColumn("Records", "SyncStatuses that are kept.", func(o obj) int64 { return o.Status.Records }),
		textColumn("Suspended", "Work that is stopped.", func(o obj) string { return strings.Join(suspended(o.Spec.Suspend), ",") }),
	}
	columns = append(columns, conditionColumns(func(o obj) []metav1.Condition { return o.Status.Conditions })...)
	columns = append(columns,
		wide(numberColumn("Expired", "SyncStatuses that have gone by retention.", func(o obj) int64 { return o.Status.RecordsExpired })),
		wide(numberColumn("Archived", "SyncStatuses that have been written to the archive.", func(o obj) int64 {
			return o.Status.RecordsArchived
		})),
		ageColumn[obj]())
	return kind[obj, configbutler.SyncPolicySpec, configbutler.SyncPolicyStatus]{
		plural: "syncpolicies", singular: "syncpolicy", shortNames: []string{"syncpol"},
		newObject:            func() obj { return &configbutler.SyncPolicy{} },
		newList:              func() runtime.Object { return &configbutler.SyncPolicyList{} },
		spec:                 func(o obj) *configbutler.SyncPolicySpec { return &o.Spec },
		status:               func(o obj) *configbutler.SyncPolicyStatus { return &o.Status },
		validate:             validation.ValidateSyncPolicy,
		validateUpdate:       validation.ValidateSyncPolicyUpdate,
		validateStatusUpdate: validation.ValidateSyncPolicyStatusUpdate,
		columns:              columns,
	}
}

// suspended returns the names of the suspended kinds of work, as in the spec.
func suspended(work configbutler.SuspendedWork) []string {
	var names []string
	for _, each := range []struct {
		name string
		is   bool
	}{
		{"environmentAutoSync", work.EnvironmentAutoSync},
		{"dependencyAutoSync", work.DependencyAutoSync},
		{"catalogNotices", work.CatalogNotices},
		{"pipelines", work.Pipelines},
	} {
		if each.is {
			names = append(names, each.name)
		}
	}
	return names
}

// shortDuration formats a duration to one or two units.
func shortDuration(d *metav1.Duration) string {
	if d == nil {
		return ""
	}
	return duration.HumanDuration(d.Duration)
}

// days formats a number of days.
func days(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%dd", *n)
}

// catalogState returns the state of a catalog, for tables.
func catalogState(o *configbutler.AppCatalog) string {
	catalog := &v1alpha1.AppCatalog{}
	if err := v1alpha1.Convert_configbutler_AppCatalog_To_v1alpha1_AppCatalog(o, catalog, nil); err != nil {
		return "" // what is stored has been converted before
	}
	return summary.Catalog(catalog)
}
