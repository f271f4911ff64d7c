// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// catalogLists have a row for each way in which a cell of the kinds of catalogs can look.
func catalogLists() map[string]runtime.Object {
	return map[string]runtime.Object{
		"appcatalogs":      &configbutler.AppCatalogList{Items: catalogRows()},
		"catalogworkloads": &configbutler.CatalogWorkloadList{Items: workloadRows()},
		"syncstatuses":     &configbutler.SyncStatusList{Items: recordRows()},
		"syncpolicies": &configbutler.SyncPolicyList{Items: []configbutler.SyncPolicy{
			{ObjectMeta: metav1.ObjectMeta{Name: "default", CreationTimestamp: before(time.Second)}},
			{
				ObjectMeta: metav1.ObjectMeta{Name: "default", CreationTimestamp: before(time.Hour)},
				Spec: configbutler.SyncPolicySpec{
					BatchWindow: &metav1.Duration{Duration: 30 * time.Second}, Retention: configbutler.Retention{Days: new(int32(90))},
					Suspend: configbutler.SuspendedWork{EnvironmentAutoSync: true, DependencyAutoSync: true, CatalogNotices: true, Pipelines: true},
				},
				Status: configbutler.SyncPolicyStatus{
					Records: 1200, RecordsExpired: 40, RecordsArchived: 30,
					Conditions: ready(metav1.ConditionTrue, "Succeeded", "The settings are in force"),
				},
			},
		}},
	}
}

// followed is a catalog that is as it should be, but for what change does.
func followed(name string, change func(*configbutler.AppCatalog)) configbutler.AppCatalog {
	catalog := configbutler.AppCatalog{
		ObjectMeta: named(name, 26*time.Hour),
		Spec:       configbutler.AppCatalogSpec{SourceNamespace: "production", Secrets: configbutler.CatalogSecretsRequester},
		Status: configbutler.AppCatalogStatus{
			ObservedGeneration: 2, Revision: 42, LastSyncedAt: new(before(5 * time.Minute)), LatestSync: name + "-x7k2p",
			Workloads:  []configbutler.CatalogEntry{{Kind: "Deployment", Name: "web"}, {Kind: "CronJob", Name: "report"}},
			Conditions: ready(metav1.ConditionTrue, "Succeeded", "The catalog offers what its spec says"),
		},
	}
	catalog.Generation = 2
	change(&catalog)
	return catalog
}

// notApplicable is a message that is longer than what the column STATE shows.
const notApplicable = `apply patches[0] (JSON6902) to Deployment "worker": ` +
	`operation [0] (replace /spec/template/metadata/annotations/tier): the object does not have that path`

func paused(reason string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionPaused, Status: metav1.ConditionTrue, Reason: reason}
}

func catalogRows() []configbutler.AppCatalog {
	pausedFor := func(reason string) func(*configbutler.AppCatalog) {
		return func(o *configbutler.AppCatalog) {
			o.Spec.PauseUntil, o.Spec.PinnedRevision = new(before(-time.Hour)), new(int64(40))
			o.Status.Conditions = append(o.Status.Conditions, paused(reason))
		}
	}
	return []configbutler.AppCatalog{
		{ObjectMeta: named("new", time.Second), Spec: configbutler.AppCatalogSpec{SourceNamespace: "production"}},
		followed("shop", func(*configbutler.AppCatalog) {}),
		followed("lost", func(o *configbutler.AppCatalog) {
			o.Status.Conditions = ready(metav1.ConditionFalse, "SourceNotFound", "The namespace production\ndoes not exist")
		}),
		followed("unpatched", func(o *configbutler.AppCatalog) {
			o.Status.Conditions = ready(metav1.ConditionFalse, "PatchFailed", notApplicable)
		}),
		followed("edited", func(o *configbutler.AppCatalog) {
			o.Generation = 4
			o.Status.PendingEdits = []configbutler.CatalogEdit{{Generation: 3, Actor: "jane"}, {Generation: 4, Actor: "joe"}}
		}),
		followed("edited-by-nobody", func(o *configbutler.AppCatalog) { o.Generation = 4 }),
		followed("missing", func(o *configbutler.AppCatalog) { o.Status.Workloads[0].Missing = true }),
		followed("unseen", func(o *configbutler.AppCatalog) {
			o.Status.Workloads[0].Missing = true
			o.Spec.Workloads = []configbutler.WorkloadReference{{Kind: "Deployment", Name: "web"}, {Kind: "Deployment", Name: "db"}}
		}),
		followed("typo", func(o *configbutler.AppCatalog) {
			o.Status.Workloads, o.Status.Revision, o.Status.LastSyncedAt = nil, 0, nil
			o.Spec.Workloads = []configbutler.WorkloadReference{{Kind: "Deployment", Name: "wep"}}
		}),
		followed("unmatched", func(o *configbutler.AppCatalog) {
			o.Status.Workloads, o.Spec.WorkloadSelector = nil, &metav1.LabelSelector{}
		}),
		followed("paused", pausedFor(v1alpha1.ReasonPauseUntil)),
		followed("pinned", func(o *configbutler.AppCatalog) {
			pausedFor(v1alpha1.ReasonPinned)(o)
			o.Status.Workloads[1].Missing = true
		}),
		followed("unpinned", func(o *configbutler.AppCatalog) {
			pausedFor(v1alpha1.ReasonPinned)(o)
			o.Spec.PinnedRevision = nil
		}),
		followed("previews", pausedFor(v1alpha1.ReasonPreviewOnly)),
		followed("waits", pausedFor("Other")),
	}
}

func workloadRows() []configbutler.CatalogWorkload {
	row := func(name string, change func(*configbutler.CatalogWorkloadRecord)) configbutler.CatalogWorkload {
		status := configbutler.CatalogWorkloadRecord{
			Kind: "Deployment", Name: name, Revision: 42, Hash: "sha256:1f2e3d", CapturedAt: new(before(5 * time.Minute)),
			Manifest: &runtime.RawExtension{}, Source: configbutler.SourceObservation{Namespace: "production"},
		}
		change(&status)
		return configbutler.CatalogWorkload{ObjectMeta: named("shop.deployment."+name, 26*time.Hour), Status: status}
	}
	return []configbutler.CatalogWorkload{
		row("web", func(*configbutler.CatalogWorkloadRecord) {}),
		row("patched", func(r *configbutler.CatalogWorkloadRecord) { r.Rendered = &runtime.RawExtension{} }),
		row("large", func(r *configbutler.CatalogWorkloadRecord) { r.Manifest = nil }),
		row("deleted", func(r *configbutler.CatalogWorkloadRecord) {
			r.Missing, r.MissingSince = true, new(before(72*time.Hour))
		}),
		row("gone", func(r *configbutler.CatalogWorkloadRecord) { r.Missing, r.CapturedAt = true, nil }),
	}
}

func recordRows() []configbutler.SyncStatus {
	row := func(name string, of configbutler.SyncType, status configbutler.SyncRecord) configbutler.SyncStatus {
		return configbutler.SyncStatus{
			ObjectMeta: named(name, 26*time.Hour),
			Spec:       configbutler.SyncStatusSpec{Type: of, Subject: configbutler.SyncSubject{Name: name[:len(name)-6]}},
			Status:     status,
		}
	}
	return []configbutler.SyncStatus{
		row("shop-x7k2p", "Catalog", configbutler.SyncRecord{
			State: "AutoApplied", AutoTriggered: true, Revision: 42, Attempts: 1, WorkloadCount: 3, WorkloadNames: []string{"api", "web", "worker"},
			ChangedBy: []configbutler.SourceAuthor{{Username: "jane@example.com"}, {FieldManager: "helm"}, {Signal: "Unknown"}},
			Commits:   []configbutler.MirroredCommit{{CommitSummary: configbutler.CommitSummary{SHA: "4f2c9e1d0b7a6655443322110099887766554433"}}},
		}),
		row("shop-b4d9q", "Catalog", configbutler.SyncRecord{
			State: "Applied", Actor: "jane@example.com", WorkloadCount: 1200, WorkloadNames: []string{"a", "b", "c", "d"},
			ChangedBy: []configbutler.SourceAuthor{{Username: "joe"}},
		}),
		row("shop-h6l8r", "Catalog", configbutler.SyncRecord{
			State: "Failed", AutoTriggered: true, Attempts: 2,
			Error: &configbutler.SyncError{Message: notApplicable},
		}),
		row("alice-f2g7s", "Dependency", configbutler.SyncRecord{
			State: "Completed", Actor: "alice", ResolvedAt: new(before(time.Minute)),
			ResourceSummaries: []configbutler.ResourceSummary{
				{Type: "Secret", Name: "db"}, {Type: "ConfigMap", Name: "app"}, {Type: "Service", Name: "db"},
			},
		}),
	}
}
