// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/openapi"
)

const modelPrefix = "com.github.configbutler.slipstream.pkg.apis.configbutler.v1alpha1."

// schemas returns the definitions of this package's types by their Go names.
func schemas() map[string]spec.Schema {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + name)
	})
	ours := map[string]spec.Schema{}
	for name, definition := range definitions {
		if short, ok := strings.CutPrefix(name, modelPrefix); ok {
			ours[short] = definition.Schema
		}
	}
	return ours
}

func TestEveryKindIsInOpenAPI(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	schemas := schemas()
	for kind, goType := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if strings.HasSuffix(goType.PkgPath(), "/v1alpha1") {
			if _, ok := schemas[kind]; !ok {
				t.Errorf("%s is missing", kind)
			}
		}
	}
}

// TestEveryFieldIsExplained checks that every field has a description, which kubectl explain shows.
func TestEveryFieldIsExplained(t *testing.T) {
	for name, schema := range schemas() {
		for field, property := range schema.Properties {
			if field != "kind" && field != "apiVersion" && !strings.HasPrefix(property.Description, field) {
				t.Errorf("%s.%s: the description must begin with the field's name, got %q", name, field, property.Description)
			}
		}
	}
}

// TestListsSayWhatTheyAre checks the list types, which cannot be changed later without breaking server-side apply.
func TestListsSayWhatTheyAre(t *testing.T) {
	want := map[string]any{
		"AppCatalogSpec.ignore":                  "atomic",
		"AppCatalogSpec.patches":                 "atomic",
		"AppCatalogSpec.workloads":               []any{"kind", "name"},
		"AppCatalogStatus.conditions":            []any{"type"},
		"AppCatalogStatus.history":               []any{"revision"},
		"AppCatalogStatus.pendingEdits":          []any{"generation"},
		"AppCatalogStatus.pendingSyncs":          []any{"id"},
		"AppCatalogStatus.workloads":             []any{"kind", "name"},
		"AutomatedBy.groups":                     "atomic",
		"ChangeDiff.fields":                      "atomic",
		"ChangeDiff.ignore":                      "atomic",
		"ChangeSpec.commits":                     "atomic",
		"ChangeSpec.fields":                      "atomic",
		"ClusterWatchRuleSpec.rules":             "atomic",
		"ConflictChoice.fields":                  "set",
		"ConflictResolutionSpec.keep":            []any{"kind", "name"},
		"ConflictResolutionSpec.take":            []any{"kind", "name"},
		"DefinitionSource.exclude":               "set",
		"DefinitionSource.include":               "set",
		"EmailSink.to":                           "set",
		"Encryption.ageRecipients":               "set",
		"EnvironmentDependencyRecord.keys":       "set",
		"EnvironmentDependencyRecord.referredBy": []any{"kind", "name", "field"},
		"EnvironmentEdit.groups":                 "atomic",
		"EnvironmentEdit.fields":                 "set",
		"EnvironmentSpec.branchWorkloads":        []any{"kind", "name"},
		"EnvironmentSpec.include":                []any{"apiVersion", "kind", "name"},
		"EnvironmentSpec.patches":                "atomic",
		"EnvironmentSpec.syncWindows":            []any{"name"},
		"EnvironmentStatus.activeSyncs":          "set",
		"EnvironmentStatus.changedDependencies":  []any{"type"},
		"EnvironmentStatus.changedWorkloads":     []any{"kind", "name"},
		"EnvironmentStatus.conditions":           []any{"type"},
		"EnvironmentStatus.conflicts":            []any{"kind", "name"},
		"EnvironmentStatus.history":              []any{"revision"},
		"EnvironmentStatus.notCopied":            []any{"kind", "name"},
		"EnvironmentStatus.pendingEdits":         []any{"generation"},
		"EnvironmentStatus.pendingRequests":      []any{"id"},
		"FieldChange.owners":                     "atomic",
		"FieldConflict.managers":                 "atomic",
		"GitDestinationRecord.syncs":             []any{"id"},
		"GitDestinationRecord.watches":           []any{"group", "version", "resource"},
		"GitDestinationSpec.ignore":              "atomic",
		"GitDestinationState.conditions":         []any{"type"},
		"GitDestinationState.pendingSyncs":       []any{"id"},
		"GitRepoConfigSpec.allowedBranches":      "set",
		"GitRepoConfigStatus.conditions":         []any{"type"},
		"IgnoreRule.fields":                      "atomic",
		"IgnoreRule.managers":                    "atomic",
		"InstanceSource.exclude":                 "set",
		"InstanceSource.resources":               "set",
		"ManifestList.ignore":                    "atomic",
		"ManifestList.unreadable":                "atomic",
		"MirrorSyncSpec.types":                   "set",
		"NotCopiedObject.serviceAccounts":        "set",
		"NotificationAuthors.exclude":            "set",
		"NotificationAuthors.include":            "set",
		"NotificationSinkSpec.events":            "set",
		"NotificationSinkSpec.namespaces":        "set",
		"NotificationSinkSpec.resources":         "set",
		"NotificationSinkSpec.windows":           []any{"name"},
		"NotificationSinkStatus.conditions":      []any{"type"},
		"ObjectChange.changedBy":                 "atomic",
		"ObjectChange.commits":                   "atomic",
		"ObjectChange.fields":                    "atomic",
		"PendingEnvironmentRequest.groups":       "atomic",
		"PendingSync.types":                      "set",
		"PipelineRun.sinks":                      []any{"name"},
		"PullRequestDelivery.labels":             "set",
		"PullRequestDelivery.reviewers":          "set",
		"Reminders.after":                        "atomic",
		"RequestOutcome.syncStatuses":            "set",
		"SyncPipelineSpec.sinks":                 []any{"name"},
		"SyncPipelineStatus.conditions":          []any{"type"},
		"SyncPipelineStatus.pendingRequests":     []any{"id"},
		"SyncPipelineStatus.sinks":               []any{"name"},
		"SyncPlan.changes":                       "atomic",
		"SyncPlan.warnings":                      "atomic",
		"SyncPolicySpec.trackingMarks":           "set",
		"SyncPolicyStatus.conditions":            []any{"type"},
		"SyncProgress.failures":                  "atomic",
		"SyncRecord.changedBy":                   "atomic",
		"SyncRecord.commits":                     "atomic",
		"SyncRecord.failures":                    []any{"type", "namespace", "name"},
		"SyncRecord.resourceSummaries":           []any{"type", "namespace", "name"},
		"SyncRecord.warnings":                    "atomic",
		"SyncRecord.workloadNames":               "atomic",
		"SyncRequestSpec.workloads":              []any{"kind", "name"},
		"SyncRequestStatus.syncStatuses":         "set",
		"WatchRuleSpec.rules":                    "atomic",
		"WatchRuleStatus.conditions":             []any{"type"},
		"WatchRuleStatus.matchedResourceTypes":   "atomic",
		"WorkloadConflict.fields":                []any{"field"},
	}
	for _, rule := range []string{"ResourceRule", "ClusterResourceRule"} {
		for _, field := range []string{"operations", "apiGroups", "apiVersions", "resources"} {
			want[rule+"."+field] = "set"
		}
	}
	got := map[string]any{}
	for name, schema := range schemas() {
		for field, property := range schema.Properties {
			if property.Type.Contains("array") && field != "items" {
				got[name+"."+field] = property.Extensions["x-kubernetes-list-type"]
				if keys, ok := property.Extensions["x-kubernetes-list-map-keys"]; ok {
					got[name+"."+field] = keys
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong lists (-want +got):\n%s", diff)
	}
}

func TestChoicesAreListed(t *testing.T) {
	tests := map[string][]any{
		"Delivery.type":              {"PullRequest", "Push"},
		"GitHost.type":               {"AzureDevOps", "GitHub", "GitLab", "Gitea"},
		"GitRepoConfigSpec.provider": {"azure", "generic", "github"},
		"Proposal.state":             {"Declined", "Equal", "Merged", "Open"},
		"Adaptation.replicas":        {"AsSource", "One"},
		"Adaptation.cronJobs":        {"AsSource", "Suspend"},
		"Adaptation.loadBalancers":   {"AsSource", "ClusterIP"},
		"DependencyCount.type": {
			"ConfigMap", "CustomResource", "GRPCRoute", "Gateway", "HTTPRoute", "HorizontalPodAutoscaler", "Ingress",
			"NetworkPolicy", "PodDisruptionBudget", "ReferenceGrant", "Secret", "Service", "ServiceAccount",
		},
		"EnvironmentDependencyRecord.type": {"ConfigMap", "Secret", "Service", "ServiceAccount"},
		"EnvironmentSpec.type":             {"Branch", "Shared"},
		"EnvironmentSpec.deletionPolicy":   {"Delete", "Orphan"},
		"IngressHosts.type":                {"AsSource", "Omit", "Template"},
		"NotCopiedObject.reason":           {"GrantsRights", "HoldsData", "Unreadable"},
		"PendingEnvironmentRequest.type":   {"Rediscover", "Resolve", "Sync"},
		"SyncRequestSpec.action":           {"All", "Catalog", "Cluster"},
		"SyncWindow.kind":                  {"Allow", "Deny"},
		"NamespacedRules.mode":             {"AllNamespaces", "FromSelector", "SameNamespace"},
		"GitDestinationSpec.granularity":   {"Batch", "PerAuthor", "PerChange"},
		"GitDestinationSpec.secrets":       {"AsIs", "Encrypt", "Omit"},
		"GitDestinationSpec.prune":         {"Always", "Never"},
		"CommitSigning.format":             {"OpenPGP", "SSH"},
		"AppCatalogSpec.secrets":           {"Requester", "Shared"},
		"Archive.type":                     {"File", "GitDestination"},
		"ClusterResourceRule.scope":        {"Cluster", "Namespaced"},
		"HTTPSink.format":                  {"CloudEvents", "ClusterWhisperer", "DotAI"},
		"JobSink.concurrencyPolicy":        {"Allow", "Forbid"},
		"Patch.type":                       {"JSON6902", "Merge", "StrategicMerge"},
		"PipelineRun.phase":                {"Finished", "Listing", "Sending"},
		"PipelineSyncSpec.scope":           {"All", "CustomResourceDefinitions", "Instances"},
		"ResourceSummary.changeType":       {"Added", "Changed", "Removed"},
		"ResourceTypeWatch.state":          {"Failing", "Listing", "Watching"},
		"SourceAuthor.signal":              {"Admission", "Audit", "ManagedFields", "Unknown"},
		"SyncPipelineSpec.mode":            {"Poll", "Watch"},
		"SyncRecord.action":                {"All", "Catalog", "Cluster"},
		"SyncRecord.state": {
			"Applied", "AutoApplied", "Completed", "Conflicted", "Dismissed", "Failed", "InProgress", "ManualIntervention", "Pending",
			"Retrying", "Superseded",
		},
		"SyncStatusSpec.type":    {"Catalog", "Dependency", "Environment"},
		"SyncSubject.kind":       {"AppCatalog", "Environment"},
		"WorkloadReference.kind": {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"},
	}
	schemas := schemas()
	for path, want := range tests {
		name, field, _ := strings.Cut(path, ".")
		if diff := cmp.Diff(want, schemas[name].Properties[field].Enum); diff != "" {
			t.Errorf("%s: wrong choices (-want +got):\n%s", path, diff)
		}
	}
}

// TestBoundsAreExplained checks that the descriptions of lists have their maximum length.
func TestBoundsAreExplained(t *testing.T) {
	schemas := schemas()
	for path, bound := range map[string]string{
		"AppCatalogSpec.ignore":             "At most 100 rules, with at most 1000 fields and managers in total, and 64 KiB of fields.",
		"AppCatalogSpec.patches":            "At most 100.",
		"AppCatalogSpec.workloads":          "At most 1000.",
		"ClusterWatchRuleSpec.rules":        "At most 100 rules, with at most 1000 entries of their lists and 1000 types in total;",
		"CommitIdentity.email":              "At most 256 bytes.",
		"CommitIdentity.name":               "At most 256 bytes.",
		"ConflictChoice.fields":             "At most 100.",
		"ConflictResolutionSpec.keep":       "At most 100.",
		"ConflictResolutionSpec.take":       "At most 100.",
		"DefinitionSource.exclude":          "At most 1000.",
		"DefinitionSource.include":          "At most 1000.",
		"Encryption.ageRecipients":          "At most 100.",
		"EnvironmentSpec.branchWorkloads":   "At most 1000.",
		"EnvironmentSpec.patches":           "At most 100.",
		"EnvironmentSpec.syncWindows":       "At most 50.",
		"GitDestinationSpec.ignore":         "At most 100 rules, with at most 1000 fields and managers in total, and 64 KiB of fields.",
		"GitRepoConfigSpec.allowedBranches": "At most 500.",
		"InstanceSource.exclude":            "At most 1000.",
		"InstanceSource.resources":          "At most 1000.",
		"MirrorSyncSpec.types":              "At most 100.",
		"ResourceRule.apiGroups":            "At most 500.",
		"ResourceRule.apiVersions":          "At most 500.",
		"ResourceRule.operations":           "At most 500.",
		"ResourceRule.resources":            "At most 500.",
		"SyncPipelineSpec.sinks":            "1 to 16.",
		"SyncRequestSpec.workloads":         "At most 1000.",
		"SyncWindow.schedule":               "At most 512 bytes.",
		"WatchRuleSpec.objectSelector":      "at most 500 labels, expressions and values.",
		"WatchRuleSpec.rules":               "At most 100 rules, with at most 1000 entries of their lists and 1000 types in total;",
	} {
		name, field, _ := strings.Cut(path, ".")
		description := strings.Join(strings.Fields(schemas[name].Properties[field].Description), " ")
		if !strings.Contains(description, bound) {
			t.Errorf("%s: %q lacks %q", path, description, bound)
		}
	}
}
