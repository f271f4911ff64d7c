// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/patch"
)

type fields = map[string]any

// live returns a workload as an API server has returned it.
func live(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "kube", "manifest", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return object
}

// ignoring returns rules that ignore fields of every object.
func ignoring(t testing.TB, pointers ...string) ignore.Rules {
	t.Helper()
	rules, err := ignore.Compile([]ignore.Rule{{Fields: pointers}})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// byDefault returns the default rules of a catalog.
func byDefault(t testing.TB) ignore.Rules {
	t.Helper()
	var spec v1alpha1.AppCatalogSpec
	v1alpha1.SetDefaults_AppCatalogSpec(&spec)
	var pointers []string
	for _, rule := range spec.Ignore {
		pointers = append(pointers, rule.Fields...)
	}
	return ignoring(t, pointers...)
}

func captured(t testing.TB, object *unstructured.Unstructured, ignored ignore.Rules) capture.Manifest {
	t.Helper()
	before := object.DeepCopy()
	out, err := capture.Capture(object, ignored)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, object.Object); diff != "" {
		t.Fatalf("Capture has modified the object:\n%s", diff)
	}
	return out
}

func set(t testing.TB, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func container(object *unstructured.Unstructured) fields {
	template := object.Object["spec"].(fields)["template"].(fields)
	return template["spec"].(fields)["containers"].([]any)[0].(fields)
}

func TestContentChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*unstructured.Unstructured)
		// pointers are ignored instead of the defaults, if any.
		pointers []string
		content  bool
	}{
		"nothing": {change: func(*unstructured.Unstructured) {}},
		"scale":   {change: func(o *unstructured.Unstructured) { set(t, o, int64(9), "spec", "replicas") }},
		"no replicas, as with an autoscaler": {change: func(o *unstructured.Unstructured) {
			unstructured.RemoveNestedField(o.Object, "spec", "replicas")
		}},
		"scale where it is not ignored": {
			change:   func(o *unstructured.Unstructured) { set(t, o, int64(9), "spec", "replicas") },
			pointers: []string{"/spec/paused"}, content: true,
		},
		"status":        {change: func(o *unstructured.Unstructured) { set(t, o, int64(2), "status", "readyReplicas") }},
		"managedFields": {change: func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }},
		"resourceVersion and generation": {change: func(o *unstructured.Unstructured) {
			o.SetResourceVersion("99999")
			o.SetGeneration(44)
		}},
		"recreated": {change: func(o *unstructured.Unstructured) { o.SetUID("another") }},
		"adopted": {change: func(o *unstructured.Unstructured) {
			set(t, o, []any{fields{"apiVersion": "v1", "kind": "Thing", "name": "a", "uid": "u", "controller": true}}, "metadata", "ownerReferences")
		}},
		"being deleted": {change: func(o *unstructured.Unstructured) {
			set(t, o, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp")
			o.SetFinalizers(append(o.GetFinalizers(), "foregroundDeletion"))
		}},
		"revision of a rollout": {change: func(o *unstructured.Unstructured) {
			set(t, o, "5", "metadata", "annotations", "deployment.kubernetes.io/revision")
		}},
		"kubectl apply of the same": {change: func(o *unstructured.Unstructured) {
			set(t, o, "{}", "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
		}},
		"label of a GitOps tool": {change: func(o *unstructured.Unstructured) {
			set(t, o, "other", "metadata", "labels", "argocd.argoproj.io/instance")
		}},
		"image": {change: func(o *unstructured.Unstructured) { container(o)["image"] = "nginx:2" }, content: true},
		"ignored image": {
			change:   func(o *unstructured.Unstructured) { container(o)["image"] = "nginx:2" },
			pointers: []string{"/spec/template/spec/containers[name=web]/image"},
		},
		"restart": {content: true, change: func(o *unstructured.Unstructured) {
			set(t, o, "later", "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		}},
		"label": {change: func(o *unstructured.Unstructured) { set(t, o, "gold", "metadata", "labels", "tier") }, content: true},
		"annotation": {
			content: true, change: func(o *unstructured.Unstructured) { set(t, o, "x", "metadata", "annotations", "example.com/a") },
		},
		"an unknown field": {
			content: true, change: func(o *unstructured.Unstructured) { set(t, o, "x", "spec", "unknown") },
		},
		"an unknown top-level field": {
			content: true, change: func(o *unstructured.Unstructured) { set(t, o, "x", "unknown") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := byDefault(t)
			if test.pointers != nil {
				rules = ignoring(t, test.pointers...)
			}
			object := live(t, "deployment")
			before := captured(t, object, rules)
			test.change(object)
			after := captured(t, object, rules)
			if changed := after.Hash != before.Hash; changed != test.content {
				t.Errorf("content changed: %v\n%s", changed, cmp.Diff(before.Object, after.Object))
			}
			if same := cmp.Equal(before.Raw, after.Raw); same == test.content {
				t.Errorf("same manifest: %v, same hash: %v", same, before.Hash == after.Hash)
			}
		})
	}
}

func TestIgnoredManagers(t *testing.T) {
	rules, err := ignore.Compile([]ignore.Rule{{Managers: []string{"tuner"}}})
	if err != nil {
		t.Fatal(err)
	}
	object := live(t, "deployment")
	set(t, object, []any{fields{"manager": "tuner", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields{
		"f:spec": fields{"f:minReadySeconds": fields{}}}}}, "metadata", "managedFields")
	before := captured(t, object, rules)
	set(t, object, int64(7), "spec", "minReadySeconds")
	if after := captured(t, object, rules); after.Hash != before.Hash {
		t.Errorf("field of an ignored manager is content:\n%s", cmp.Diff(before.Object, after.Object))
	}
	set(t, object, int64(7), "spec", "revisionHistoryLimit")
	if after := captured(t, object, rules); after.Hash == before.Hash {
		t.Error("field of another manager is ignored")
	}
}

func TestManifestHasNoSourceMetadata(t *testing.T) {
	got := captured(t, live(t, "deployment"), byDefault(t))
	var kept fields
	if err := json.Unmarshal(got.Raw.Raw, &kept); err != nil {
		t.Fatal(err)
	}
	metadata := kept["metadata"].(fields)
	want := fields{
		"name": "web", "namespace": "shop",
		"labels": fields{"app": "web", "app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm"},
		"annotations": fields{
			"meta.helm.sh/release-name": "shop", "argocd.argoproj.io/sync-options": "Prune=false", "kustomize.toolkit.fluxcd.io/prune": "disabled",
		},
	}
	if diff := cmp.Diff(want, metadata); diff != "" {
		t.Errorf("metadata differs:\n%s", diff)
	}
	if kept["status"] != nil || kept["spec"].(fields)["replicas"] != nil || kept["spec"].(fields)["template"] == nil {
		t.Errorf("manifest = %s", got.Raw.Raw)
	}
}

func TestReadReturnsTheCapturedManifest(t *testing.T) {
	for _, name := range []string{"deployment", "statefulset", "daemonset", "replicaset", "job", "job-manual", "cronjob"} {
		before := captured(t, live(t, name), byDefault(t))
		stored, err := json.Marshal(v1alpha1.CatalogWorkload{Status: v1alpha1.CatalogWorkloadRecord{Manifest: before.Raw}})
		if err != nil {
			t.Fatal(err)
		}
		var record v1alpha1.CatalogWorkload
		if err := json.Unmarshal(stored, &record); err != nil {
			t.Fatal(err)
		}
		after, err := capture.Read(record.Status.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s differs:\n%s", name, diff)
		}
	}
}

// TestSizeOfAManifest has manifests around the size above which a record has only the hash.
func TestSizeOfAManifest(t *testing.T) {
	object := live(t, "deployment")
	set(t, object, "", "metadata", "annotations", "example.com/file")
	room := v1alpha1.MaxManifestBytes - len(captured(t, object, byDefault(t)).Raw.Raw)
	hashes := map[string]bool{}
	for _, length := range []int{room, room + 1, room + 2, 2 * room} {
		set(t, object, strings.Repeat("a", length), "metadata", "annotations", "example.com/file")
		got := captured(t, object, byDefault(t))
		if kept := got.Raw != nil; kept != (length == room) || got.Object == nil {
			t.Errorf("manifest of %d bytes is stored: %v", v1alpha1.MaxManifestBytes-room+length, kept)
		}
		hashes[got.Hash] = true
	}
	if len(hashes) != 4 {
		t.Errorf("four manifests have %d hashes", len(hashes))
	}
}

func TestPatched(t *testing.T) {
	plain := captured(t, live(t, "deployment"), byDefault(t))
	before := plain.Object.DeepCopy()
	for name, test := range map[string]struct {
		kind, text string
		changes    bool
	}{
		"of another kind":      {"StatefulSet", `{"spec":{"paused":true}}`, false},
		"that changes nothing": {"Deployment", `{"metadata":{"labels":{"app":"web"}}}`, false},
		"that changes it":      {"Deployment", `{"spec":{"paused":true}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			patches, errs := patch.Compile([]patch.Patch{{Target: patch.Target{Kind: test.kind}, Type: patch.Merge, Patch: test.text}},
				field.NewPath("patches"))
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			got, err := plain.Patched(patches)
			if err != nil {
				t.Fatal(err)
			}
			if changed := got.Hash != plain.Hash; changed != test.changes || changed == cmp.Equal(got.Raw, plain.Raw) {
				t.Errorf("changed = %v", changed)
			}
			if diff := cmp.Diff(before.Object, plain.Object.Object); diff != "" {
				t.Errorf("Patched has modified the manifest:\n%s", diff)
			}
		})
	}
	patches, errs := patch.Compile([]patch.Patch{{
		Target: patch.Target{Kind: "Deployment"}, Type: patch.JSON6902, Patch: `[{"op":"remove","path":"/spec/nothing"}]`,
	}}, field.NewPath("patches"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if _, err := plain.Patched(patches); err == nil || !strings.Contains(err.Error(), "patches[0]") {
		t.Errorf("error of a patch that does not apply = %v", err)
	}
}

func TestCaptureErrors(t *testing.T) {
	for name, object := range map[string]fields{
		"no kind":           {"apiVersion": "apps/v1", "metadata": fields{"name": "a"}},
		"no apiVersion":     {"kind": "Deployment", "metadata": fields{"name": "a"}},
		"a value of no API": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": fields{"f": func() {}}},
	} {
		if got, err := capture.Capture(&unstructured.Unstructured{Object: object}, ignore.Rules{}); err == nil {
			t.Errorf("%s: captured %v, want an error", name, got)
		}
	}
	raw := captured(t, live(t, "deployment"), ignore.Rules{}).Raw
	raw.Raw = raw.Raw[1:]
	if got, err := capture.Read(raw); err == nil {
		t.Errorf("truncated manifest was decoded: %v", got)
	}
}
