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

// kubectl explain shows these descriptions and nothing else.
func TestEveryFieldIsExplained(t *testing.T) {
	for name, schema := range schemas() {
		for field, property := range schema.Properties {
			if field != "kind" && field != "apiVersion" && !strings.HasPrefix(property.Description, field) {
				t.Errorf("%s.%s: the description must begin with the field's name, got %q", name, field, property.Description)
			}
		}
	}
}

// What a list is cannot be changed later without breaking server-side apply.
func TestListsSayWhatTheyAre(t *testing.T) {
	want := map[string]any{
		"ClusterWatchRuleSpec.rules":           []any{"name"},
		"Encryption.ageRecipients":             "set",
		"GitDestinationRecord.watches":         []any{"group", "version", "resource"},
		"GitDestinationRecord.syncs":           []any{"id"},
		"GitDestinationSpec.ignore":            "atomic",
		"GitDestinationState.conditions":       []any{"type"},
		"GitDestinationState.pendingSyncs":     []any{"id"},
		"GitRepoConfigSpec.allowedBranches":    "set",
		"GitRepoConfigStatus.conditions":       []any{"type"},
		"IgnoreRule.fields":                    "atomic",
		"IgnoreRule.managers":                  "atomic",
		"MirrorSyncSpec.types":                 "set",
		"PendingSync.types":                    "set",
		"SyncProgress.failures":                "atomic",
		"WatchRuleSpec.rules":                  []any{"name"},
		"WatchRuleStatus.conditions":           []any{"type"},
		"WatchRuleStatus.matchedResourceTypes": "atomic",
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
		"NamespacedRules.mode":           {"AllNamespaces", "FromSelector", "SameNamespace"},
		"GitDestinationSpec.granularity": {"Batch", "PerAuthor", "PerChange"},
		"GitDestinationSpec.secrets":     {"AsIs", "Encrypt", "Omit"},
		"GitDestinationSpec.prune":       {"Always", "Never"},
		"CommitSigning.format":           {"OpenPGP", "SSH"},
		"ClusterResourceRule.scope":      {"Cluster", "Namespaced"},
		"ResourceTypeWatch.state":        {"Failing", "Listing", "Watching"},
	}
	schemas := schemas()
	for path, want := range tests {
		name, field, _ := strings.Cut(path, ".")
		if diff := cmp.Diff(want, schemas[name].Properties[field].Enum); diff != "" {
			t.Errorf("%s: wrong choices (-want +got):\n%s", path, diff)
		}
	}
}
