// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func appCatalog() *configbutler.AppCatalog {
	return &configbutler.AppCatalog{
		ObjectMeta: meta("shop"),
		Spec: configbutler.AppCatalogSpec{
			SourceNamespace: "production",
			Workloads: []configbutler.WorkloadReference{
				{Kind: configbutler.WorkloadDeployment, Name: "api"}, {Kind: configbutler.WorkloadCronJob, Name: "api"},
			},
			WorkloadSelector: selector("offer", "yes"),
			Patches: []configbutler.Patch{{
				Target: configbutler.PatchTarget{Kind: "Deployment", LabelSelector: selector("tier", "web")},
				Type:   configbutler.PatchStrategicMerge, Patch: "spec: {replicas: 1}",
			}},
			Ignore:       []configbutler.IgnoreRule{{Fields: []string{"/spec/replicas"}}},
			HistoryLimit: ptr.To(int32(10)),
			Secrets:      configbutler.CatalogSecretsRequester,
		},
		Status: configbutler.AppCatalogStatus{
			Revision: 7,
			History:  []configbutler.CatalogRevision{{Revision: 7}, {Revision: 5}, {Revision: 4}},
		},
	}
}

func TestAppCatalog(t *testing.T) {
	type cat = *configbutler.AppCatalog
	checkChanges(t, appCatalog, validation.ValidateAppCatalog, validation.ValidateAppCatalogUpdate, []change[cat]{
		{name: "only a selector", do: func(c cat) { c.Spec.Workloads = nil }},
		{name: "everything in the source", do: func(c cat) { c.Spec.Workloads, c.Spec.WorkloadSelector = nil, &metav1.LabelSelector{} }},
		{name: "only workloads", do: func(c cat) { c.Spec.WorkloadSelector = nil }},
		{name: "nothing ignored and nothing patched", do: func(c cat) { c.Spec.Ignore, c.Spec.Patches = nil, nil }},
		{name: "a pause, and one that has passed", do: func(c cat) { c.Spec.PauseUntil = &metav1.Time{Time: time.Unix(0, 0)} }},
		{name: "secrets for all", do: func(c cat) { c.Spec.Secrets = configbutler.CatalogSecretsShared }},
		{
			name: "neither workloads nor a selector", do: func(c cat) { c.Spec.Workloads, c.Spec.WorkloadSelector = nil, nil },
			path: "spec.workloads", says: "or give a workloadSelector",
		},
		{
			name: "a kind that is no workload", do: func(c cat) { c.Spec.Workloads[0].Kind = "ConfigMap" },
			path: "spec.workloads[0].kind", says: `"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"`,
		},
		{
			name: "a workload without a name", do: func(c cat) { c.Spec.Workloads[1].Name = "" },
			path: "spec.workloads[1].name", says: "Required",
		},
		{
			name: "a workload whose name cannot be", do: func(c cat) { c.Spec.Workloads[1].Name = "API" },
			path: "spec.workloads[1].name", says: "RFC 1123",
		},
		{
			name: "a workload twice", do: func(c cat) { c.Spec.Workloads = append(c.Spec.Workloads, c.Spec.Workloads[0]) },
			path: "spec.workloads[2]", says: "Duplicate",
		},
		{
			name: "a name that just leaves room for its record",
			do:   func(c cat) { c.Spec.Workloads[0].Name = strings.Repeat("a", 253-len("shop.deployment.")) },
		},
		{
			name: "a name that leaves none", do: func(c cat) { c.Spec.Workloads[0].Name = strings.Repeat("a", 254-len("shop.deployment.")) },
			path: "spec.workloads[0].name", says: "longer than 253 characters, by 1",
		},
		{
			name: "a name that is too long for any workload", do: func(c cat) { c.Spec.Workloads[0].Name = strings.Repeat("a", 254) },
			path: "spec.workloads[0].name", says: "no more than 253 characters",
		},
		{
			name: "too many workloads", do: func(c cat) {
				for i := range 999 {
					c.Spec.Workloads = append(c.Spec.Workloads, configbutler.WorkloadReference{Kind: configbutler.WorkloadJob, Name: fmt.Sprint(i)})
				}
			},
			path: "spec.workloads", says: "at most 1000",
		},
		{
			name: "a selector that cannot be", do: func(c cat) { c.Spec.WorkloadSelector = selector("a", "b c") },
			path: "spec.workloadSelector.matchLabels", says: "b c",
		},
		{
			name: "a patch that cannot be read", do: func(c cat) { c.Spec.Patches[0].Patch = "spec: {replicas: [" },
			path: "spec.patches[0].patch", says: "YAML",
		},
		{
			name: "a patch of an unknown type", do: func(c cat) { c.Spec.Patches[0].Type = "Replace" },
			path: "spec.patches[0].type", says: `"StrategicMerge"`,
		},
		{
			name: "a patch for no kind", do: func(c cat) { c.Spec.Patches[0].Target.Kind, c.Spec.Patches[0].Type = "", configbutler.PatchMerge },
			path: "spec.patches[0].target.kind", says: "such as Deployment",
		},
		{
			name: "a patch that makes another object", do: func(c cat) { c.Spec.Patches[0].Patch = "metadata: {name: other}" },
			path: "spec.patches[0].patch", says: "metadata.name",
		},
		{
			name: "ignoring what identifies objects", do: func(c cat) { c.Spec.Ignore[0].Fields[0] = "/metadata/name" },
			path: "spec.ignore[0].fields[0]", says: "tells objects apart",
		},
		{
			name: "no history", do: func(c cat) { c.Spec.HistoryLimit = ptr.To(int32(0)) },
			path: "spec.historyLimit", says: "at least 1 and at most 100",
		},
		{
			name: "a history without end", do: func(c cat) { c.Spec.HistoryLimit = ptr.To(int32(101)) },
			path: "spec.historyLimit", says: "at least 1 and at most 100",
		},
		{
			name: "an unknown way with Secrets", do: func(c cat) { c.Spec.Secrets = "All" },
			path: "spec.secrets", says: `"Requester", "Shared"`,
		},
		{
			name: "an access policy that lacks its selector", do: func(c cat) {
				c.Spec.AccessPolicy = &configbutler.CatalogAccessPolicy{
					NamespacedRules: configbutler.NamespacedRules{Mode: configbutler.AccessModeFromSelector},
				}
			},
			path: "spec.accessPolicy.namespacedRules.namespaceSelector", says: "needs it",
		},
	})
}

func TestSourceNamespace(t *testing.T) {
	for namespace, says := range map[string]string{"": "such as production", "a.b": "must not contain dots"} {
		errs := validation.ValidateAppCatalog(with(appCatalog(), func(c *configbutler.AppCatalog) { c.Spec.SourceNamespace = namespace }))
		change[struct{}]{path: "spec.sourceNamespace", says: says}.check(t, errs)
	}
	errs := validation.ValidateAppCatalogUpdate(
		with(appCatalog(), func(c *configbutler.AppCatalog) { c.Spec.SourceNamespace = "staging" }), appCatalog())
	change[struct{}]{path: "spec.sourceNamespace", says: "must stay production"}.check(t, errs)
}

func TestAppCatalogName(t *testing.T) {
	for _, name := range []string{"shop.web", strings.Repeat("a", 64), "Shop"} {
		catalog := with(appCatalog(), func(c *configbutler.AppCatalog) { c.Name = name })
		change[struct{}]{path: "metadata.name", says: "must"}.check(t, validation.ValidateAppCatalog(catalog))
	}
}

func TestPinnedRevision(t *testing.T) {
	pinned := func(revision int64) *configbutler.AppCatalog {
		return with(appCatalog(), func(c *configbutler.AppCatalog) { c.Spec.PinnedRevision = &revision })
	}
	none := with(appCatalog(), func(c *configbutler.AppCatalog) { c.Status.History = nil })
	tests := []struct {
		name       string
		catalog    *configbutler.AppCatalog
		old        *configbutler.AppCatalog
		path, says string
	}{
		{"a new catalog", pinned(7), nil, "spec.pinnedRevision", "absent from a new catalog"},
		{"the newest", pinned(7), appCatalog(), "", ""},
		{"an older one", pinned(4), pinned(7), "", ""},
		{"one that is not kept", pinned(6), appCatalog(), "spec.pinnedRevision", `supported values: "7", "5", "4"`},
		{"one that never was", pinned(-1), appCatalog(), "spec.pinnedRevision", "supported values"},
		{"one that stays pinned and is kept no more", pinned(1), pinned(1), "", ""},
		{"no history yet", pinned(1), none, "spec.pinnedRevision", "status.history is empty"},
		{"no pin any more", appCatalog(), pinned(4), "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			errs := validation.ValidateAppCatalog(test.catalog)
			if test.old != nil {
				errs = validation.ValidateAppCatalogUpdate(test.catalog, test.old)
			}
			change[struct{}]{path: test.path, says: test.says}.check(t, errs)
		})
	}
}

func TestAppCatalogStatus(t *testing.T) {
	type status = *configbutler.AppCatalogStatus
	entry := configbutler.CatalogEntry{Kind: configbutler.WorkloadJob, Name: "import", Revision: 3}
	tests := []change[status]{
		{name: "all that there can be", do: func(s status) {
			s.Revision, s.Workloads = 8, []configbutler.CatalogEntry{entry}
			s.History = []configbutler.CatalogRevision{{Revision: 8}, {Revision: 7}}
			s.PendingEdits = []configbutler.CatalogEdit{{Generation: 2, Actor: "jane"}, {Generation: 3, Actor: "jane"}}
			s.PendingSyncs = []configbutler.PendingCatalogSync{{ID: "1", Actor: "jane"}, {ID: "2", Actor: "joe"}}
		}},
		{
			name: "a revision that falls", do: func(s status) { s.Revision, s.History = 6, nil },
			path: "status.revision", says: "must not fall: it was 7",
		},
		{
			name: "a history that is not in order", do: func(s status) { s.History[0], s.History[1] = s.History[1], s.History[0] },
			path: "status.history[1].revision", says: "the newest comes first",
		},
		{
			name: "a revision twice", do: func(s status) { s.History[1].Revision = 7 },
			path: "status.history[1].revision", says: "less than 7",
		},
		{
			name: "a history ahead of the revision", do: func(s status) { s.History[0].Revision = 8 },
			path: "status.history[0].revision", says: "less than 8",
		},
		{
			name: "a workload twice", do: func(s status) {
				s.Workloads = []configbutler.CatalogEntry{entry, {Kind: entry.Kind, Name: entry.Name, Revision: 4}}
			},
			path: "status.workloads[1]", says: "Duplicate",
		},
		{
			name: "a workload of another kind", do: func(s status) {
				s.Workloads = []configbutler.CatalogEntry{{Kind: "Pod", Name: "x"}}
			},
			path: "status.workloads[0].kind", says: `"Deployment"`,
		},
		{
			name: "edited without a user", do: func(s status) { s.EditedBy = &configbutler.AutomatedBy{} },
			path: "status.editedBy.username", says: "had the catalog show more",
		},
		{
			name: "an edit without a user", do: func(s status) { s.PendingEdits = []configbutler.CatalogEdit{{Generation: 2}} },
			path: "status.pendingEdits[0].actor", says: "the user who made",
		},
		{
			name: "an edit twice", do: func(s status) {
				s.PendingEdits = []configbutler.CatalogEdit{{Generation: 2, Actor: "jane"}, {Generation: 2, Actor: "joe"}}
			},
			path: "status.pendingEdits[1].generation", says: "Duplicate",
		},
		{
			name: "a request twice", do: func(s status) {
				s.PendingSyncs = []configbutler.PendingCatalogSync{{ID: "1", Actor: "jane"}, {ID: "1", Actor: "joe"}}
			},
			path: "status.pendingSyncs[1].id", says: "Duplicate",
		},
		{
			name: "too many requests", do: func(s status) {
				for i := range v1alpha1.MaxPendingSyncs + 1 {
					s.PendingSyncs = append(s.PendingSyncs, configbutler.PendingCatalogSync{ID: fmt.Sprint(i), Actor: "jane"})
				}
			},
			path: "status.pendingSyncs", says: "at most 16",
		},
		{
			name: "a generation that cannot be", do: func(s status) { s.ObservedGeneration = -1 },
			path: "status.observedGeneration", says: "greater than or equal to 0",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			catalog := appCatalog()
			test.do(&catalog.Status)
			test.check(t, validation.ValidateAppCatalogStatusUpdate(catalog, appCatalog()))
		})
	}
}
