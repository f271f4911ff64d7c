// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/kube/patch"
)

// FuzzPatch lays any patch over any Deployment: whatever is taken keeps the object's identity, leaves the input alone, can
// be written as JSON, and does the same each time.
func FuzzPatch(f *testing.F) {
	types := []patch.Type{patch.StrategicMerge, patch.JSON6902, patch.Merge}
	whole, err := json.Marshal(object(f, deployment).Object["spec"])
	if err != nil {
		f.Fatal(err)
	}
	for _, spec := range []string{
		string(whole), `{"template":{"spec":{"containers":[{"name":"web"},{"name":"web"}]}}}`, `{"template":null}`, `{"strategy":{"type":"a"}}`,
	} {
		for _, text := range []string{
			"spec: {template: {spec: {containers: [{name: web, image: i, $patch: replace}]}}}",
			"spec: {template: {spec: {containers: [{$patch: replace}, {name: web, ports: [{containerPort: 80}]}], tolerations: [{key: a}]}}}",
			"spec: {strategy: {$retainKeys: [type], type: Recreate}}",
			"metadata: {finalizers: [a, b], labels: {a: null}}",
			"spec: {template: {spec: {volumes: [{name: v, $retainKeys: [name, emptyDir], emptyDir: {}}], " +
				"topologySpreadConstraints: [{topologyKey: z}]}}}",
			"[{op: move, from: /spec/template, path: /spec/template/spec}, {op: copy, from: /spec, path: /spec/-1}]",
			"[{op: add, path: /spec/template/spec/containers/-1, value: null}, {op: test, path: /spec/x, value: null}]",
			`[{"op":"replace","path":"/spec/template/spec/containers/0","value":{}},{"op":"remove","path":"/metadata/labels/a~1b"}]`,
			"[{op: add, path: /metadata/labels, value: 1}, {op: add, path: /spec, value: []}, {op: add, path: /spec/0, value: a}]",
		} {
			for how := range types {
				f.Add(spec, text, how)
			}
		}
	}
	f.Fuzz(func(t *testing.T, spec, text string, how int) {
		if how < 0 || how >= len(types) {
			return
		}
		patches, errs := patch.Compile([]patch.Patch{on("Deployment", types[how], text)}, field.NewPath("patches"))
		before := object(t, deployment)
		if len(errs) > 0 || utiljson.Unmarshal([]byte(spec), new(map[string]any)) != nil {
			return
		}
		var fields any
		if err := utiljson.Unmarshal([]byte(spec), &fields); err != nil {
			return
		}
		before.Object["spec"] = fields
		checkApply(t, patches, before)
	})
}

func checkApply(t *testing.T, patches patch.Patches, before *unstructured.Unstructured) {
	t.Helper()
	input := before.DeepCopy()
	after, err := patches.Apply(before)
	if diff := cmp.Diff(input.Object, before.Object); diff != "" {
		t.Fatalf("the object was changed:\n%s", diff)
	}
	again, errAgain := patches.Apply(before)
	if (err == nil) != (errAgain == nil) {
		t.Fatalf("first %v, then %v", err, errAgain)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(after.Object, again.Object); diff != "" {
		t.Fatalf("two results:\n%s", diff)
	}
	if after.GetName() != "web" || after.GetNamespace() != "shop" || after.GetUID() != "0c2f" || after.GetKind() != "Deployment" ||
		after.GetAPIVersion() != "apps/v1" || !cmp.Equal(before.Object["status"], after.Object["status"]) {
		t.Fatalf("not the same object: %v", after.Object)
	}
	if _, err := after.MarshalJSON(); err != nil {
		t.Fatalf("write as JSON: %v", err)
	}
}
