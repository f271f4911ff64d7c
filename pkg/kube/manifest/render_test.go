// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// readObject reads an object as the API server returned it.
func readObject(t testing.TB, file string) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(content); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	return obj
}

// goldenInputs names the files that hold objects as the API server returned them.
func goldenInputs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden inputs found: %v", err)
	}
	return files
}

func TestRenderGolden(t *testing.T) {
	for _, file := range goldenInputs(t) {
		golden := strings.TrimSuffix(file, ".json") + ".yaml"
		t.Run(filepath.Base(golden), func(t *testing.T) {
			obj := readObject(t, file)
			got, err := Render(obj)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the file differs (-want +got):\n%s", diff)
			}
			checkRender(t, obj.Object)
			checkExact(t, withoutRuntime(obj.Object))
		})
	}
}

func TestCanonicalIsWhatRenderWrites(t *testing.T) {
	for _, file := range goldenInputs(t) {
		obj := readObject(t, file)
		canonical, err := Canonical(obj)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(readObject(t, file).Object, obj.Object); diff != "" {
			t.Errorf("%s was changed:\n%s", file, diff)
		}
		written, err := Render(obj)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parse(t, written), canonical.Object); diff != "" {
			t.Errorf("%s differs from what is written:\n%s", file, diff)
		}
	}
	if _, err := Canonical(&unstructured.Unstructured{Object: fields{"kind": "Thing"}}); err == nil {
		t.Error("an object without apiVersion has a canonical form")
	}
}
