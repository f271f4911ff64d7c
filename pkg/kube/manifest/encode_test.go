// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestNumbers(t *testing.T) {
	tests := []struct {
		number any
		want   string
	}{
		{int64(0), "0"},
		{int64(math.MaxInt64), "9223372036854775807"},
		{int64(math.MinInt64), "-9223372036854775808"},
		{int64(1<<53 + 1), "9007199254740993"},
		{0.0, "0"},
		{math.Copysign(0, -1), "-0.0"},
		{1.0, "1"},
		{-2.0, "-2"},
		{1.5, "1.5"},
		{0.1, "0.1"},
		{1e-6, "0.000001"},
		{1e-7, "1.0e-07"},
		{-1.25e-300, "-1.25e-300"},
		{float64(1 << 62), "4611686018427387904"},
		{float64(1 << 63), "9.223372036854776e+18"},
		{-float64(1 << 63), "-9223372036854775808"},
		{1e21, "1.0e+21"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "5.0e-324"},
		{math.Nextafter(1e18, 2e18), "1000000000000000128"},
		{1234567.891, "1234567.891"},
	}
	for _, test := range tests {
		object := map[string]any{"number": test.number}
		if got, want := string(checkExact(t, object)), "number: "+test.want+"\n"; got != want {
			t.Errorf("%v is written as %q, want %q", test.number, got, want)
		}
	}
}

func TestNegativeZeroKeepsItsSign(t *testing.T) {
	encoded, err := encode(map[string]any{"n": math.Copysign(0, -1)})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if err := yamlv3.Unmarshal(encoded, &got); err != nil || !math.Signbit(got["n"]) {
		t.Errorf("%q reads as %v, %v", encoded, got, err)
	}
}

func TestLayout(t *testing.T) {
	type fields = map[string]any
	object := fields{
		"a":          fields{"metadata": fields{"zone": "b", "name": "a"}},
		"apiVersion": "v1",
		"empty":      fields{"list": []any{}, "map": fields{}, "nothing": nil, "text": ""},
		"kind":       "Thing",
		"list": []any{
			[]any{[]any{int64(1)}, []any{}},
			fields{"b": []any{"c"}, "a": true},
			fields{},
			"two\nlines",
			nil,
		},
		"metadata": fields{
			"annotations": fields{"b": "2", "a": "1"}, "generateName": "a-", "labels": fields{"x": "y"}, "name": "a", "namespace": "b",
			"finalizers": []any{"example.com/z", "example.com/a"},
		},
	}
	want := `apiVersion: v1
kind: Thing
metadata:
  name: a
  namespace: b
  labels:
    x: "y"
  annotations:
    a: "1"
    b: "2"
  finalizers:
  - example.com/z
  - example.com/a
  generateName: a-
a:
  metadata:
    name: a
    zone: b
empty:
  list: []
  map: {}
  nothing: null
  text: ""
list:
- - - 1
  - []
- a: true
  b:
  - c
- {}
- |-
  two
  lines
- null
`
	if diff := cmp.Diff(want, string(checkExact(t, object))); diff != "" {
		t.Errorf("the layout differs (-want +got):\n%s", diff)
	}
}

func TestLongKeys(t *testing.T) {
	for _, length := range []int{100, longestImplicitKey - 1, longestImplicitKey, longestImplicitKey + 1, 1022, 1025, 5000} {
		key := strings.Repeat("k", length)
		checkExact(t, map[string]any{
			key: map[string]any{key: []any{"a"}, "a\n" + key: "two\nlines", key + "a": map[string]any{}},
			"b": []any{map[string]any{key: key}},
		})
	}
}

func TestDeepNesting(t *testing.T) {
	var value any = "a"
	for range 500 {
		value = map[string]any{"a": []any{value}}
	}
	checkExact(t, map[string]any{"a": value})
}

func TestRenderRefuses(t *testing.T) {
	object := func(value any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Thing", "spec": map[string]any{"list": []any{value}}}
	}
	tests := map[string]struct {
		object map[string]any
		want   string
	}{
		"nothing":       {nil, "apiVersion and kind"},
		"no kind":       {map[string]any{"apiVersion": "v1"}, "apiVersion and kind"},
		"no apiVersion": {map[string]any{"kind": "Thing"}, "apiVersion and kind"},
		"not UTF-8":     {object("a\xff"), "spec: list: 0: a string is not UTF-8"},
		"key":           {object(map[string]any{"\xff": "a"}), "a string is not UTF-8"},
		"text":          {object("a\n\xff\n"), "a string is not UTF-8"},
		"not a number":  {object(math.NaN()), "NaN is no JSON number"},
		"infinite":      {object(math.Inf(-1)), "-Inf is no JSON number"},
		"other type":    {object(struct{}{}), "Go type struct {}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Render(&unstructured.Unstructured{Object: test.object})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Render() = %q, %v; want an error with %q", got, err, test.want)
			}
		})
	}
	if _, err := Render(nil); err == nil {
		t.Error("Render(nil) succeeded")
	}
}
