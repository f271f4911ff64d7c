// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomized is what `kustomize build` makes of a folder that holds one file.
func kustomized(file []byte) (object map[string]any, written []byte, err error) {
	folder := filesys.MakeFsInMemory()
	for name, content := range map[string][]byte{"kustomization.yaml": []byte("resources: [object.yaml]\n"), "object.yaml": file} {
		if err := folder.WriteFile(name, content); err != nil {
			return nil, nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(folder, ".")
	if err != nil {
		return nil, nil, fmt.Errorf("kustomize build: %w", err)
	}
	written, err = resources.AsYaml()
	if err != nil {
		return nil, nil, fmt.Errorf("kustomize build: %w", err)
	}
	if resources.Size() != 1 {
		return nil, nil, fmt.Errorf("kustomize build: there are %d objects", resources.Size())
	}
	object, err = resources.Resources()[0].Map()
	return object, written, err
}

// checkKustomizeValue has Kustomize build an object that holds a value, unless there is in it what no form can bring through.
func checkKustomizeValue(t *testing.T, value map[string]any) {
	t.Helper()
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "spec": value}
	file, err := encode(object)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if !unbuildable.Match(text) {
		checkKustomize(t, file)
	}
}

// checkKustomize builds a file with Kustomize and compares what it has read, and what it writes.
func checkKustomize(t *testing.T, file []byte) {
	t.Helper()
	object, written, err := kustomized(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	sameValue(t, "kustomize reads\n"+string(file), parse(t, file), object)
	sameValue(t, "kustomize writes\n"+string(written), parse(t, file), parse(t, written))
}

func TestKustomizeBuildsGolden(t *testing.T) {
	for _, file := range goldenInputs(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			object := readObject(t, file)
			if data, found, _ := unstructured.NestedStringMap(object.Object, "data"); found {
				maps.DeleteFunc(data, func(_, text string) bool { return unbuildable.MatchString(text) })
				if err := unstructured.SetNestedStringMap(object.Object, data, "data"); err != nil {
					t.Fatal(err)
				}
			}
			rendered, err := Render(object)
			if err != nil {
				t.Fatal(err)
			}
			checkKustomize(t, rendered)
		})
	}
}

// unbuildable is what Kustomize changes or refuses in whatever form it is written, as canonical-form.md says: characters that it writes as
// they are and cannot read again, and a key that it takes for a merge.
var unbuildable = regexp.MustCompile(`[\x7f-\x{9f}\x{fffe}\x{ffff}]|"\\u003c\\u003c":`)

func TestKustomizeBuildsNastyTexts(t *testing.T) {
	for _, text := range nastyTexts {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			for _, object := range []map[string]any{
				{"data": map[string]any{"a": text, "next": "a"}},
				{"data": map[string]any{"zlast": text}},
				{"spec": map[string]any{"list": []any{text, map[string]any{"a": text}, []any{text}}}},
			} {
				object["apiVersion"], object["kind"], object["metadata"] = "example.com/v1", "Thing", map[string]any{"name": "a"}
				rendered, err := Render(&unstructured.Unstructured{Object: object})
				if err != nil {
					t.Fatal(err)
				}
				if unbuildable.MatchString(text) {
					if _, written, err := kustomized(rendered); err == nil && reflect.DeepEqual(parse(t, written), object) {
						t.Errorf("Kustomize can build this now:\n%s", rendered)
					}
					continue
				}
				checkKustomize(t, rendered)
			}
		})
	}
}
