// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// nastyTexts are strings that YAML parsers are known to read as something else, or not at all.
var nastyTexts = []string{
	"", " ", "  ", "~", "null", "Null", "yes", "YES", "no", "on", "off", "y", "N", "true", "False", "=", "<<",
	"0", "-1", "+1", "0o7", "0777", "0x1F", "0X1f", "0b11", "1_000", "1,000", "1e3", "1E+3", "1.", ".5", "-.5", "1.5e-3",
	".inf", "-.INF", "+.Inf", ".NaN", "12:30", "12:30:45", "190:20:30.15", "1.25.3", "10.0.0.1", "0.0.0.0/0",
	"2024-01-31", "2024-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "20240131",
	"-", "--", "---", "--- a", "...", "... a", "- a", "-a", "--flag=value", "?", "? a", "?a", ":", ": a", ":a", "a:", "a: b", "a:b",
	"a #b", "a#b", "#a", "[a]", "{a}", "{{ .Values.a }}", "&a", "*a", "!a", "!!int 1", "|", ">", "'", "''", "it's", `"`, `a "b" c`,
	`\`, `C:\dir`, "%a", "@a", "`a`", "a,b", ",a", " a", "a ", "\ta", "a\t", "a\tb", "a\t\n", "\t", "\n", "\n\n", "\n\n\n",
	"a\n", "a\n\n", "a\n\n\n", "a\nb", "a\n b", " a\nb", "  a\nb\n", "\na",
	"\n a\n", "\n\n  a", "a\n\n\nb\n", "a\n  ", "a\n  \n", "  \n", "  \n  ",
	"   \na", "\n   \na", "a\n\tb\n", "\ta\n", "\n\ta", "\t\n", " \ta\n", "\n \ta", "\n\n\ta\nb\n",
	"a\n\t", "a\n\t\n", "a \nb \n", "#a\nb\n", "---\na: b\n", "...\n", "- a\n- b\n",
	"a\r\nb\r\n", "a\rb", "\r", "a\u0085b", "a\u2028b\nc", "a\u2029b",
	"\ufeffa", "a\ufeff\nb", "\x00", "a\x1bb", "\x7f", "\u00a0a\nb", "a\u0080",
	"é", "日本語\nテキスト\n", "🦀", "👩‍👩‍👧\n🦀", "\ufffd", "\ufffe", "\uffff", "\U0001ffff", "e\u0301",
	"a'b\"c", "key: |\n  text\n", "a: 'b", "0x", "0o", "0b", "0xg", "1e", "e1",
	"1e5x", "+", "+a", "12e03", "1__0", "0.0.0", "Infinity", "NaN", "undefined",
	"0o17", "-0x1f", "-0b1", "1:2", "a\n---\nb", "\\n", "\\\n", "a\\\nb", "\"\n", "'\n'",
}

// sameValue compares JSON values, numbers by what they count.
func sameValue(t *testing.T, what string, want, got any) {
	t.Helper()
	want, got = normalized(want), normalized(got)
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: the value changed (-want +got):\n%s", what, cmp.Diff(want, got))
	}
}

type number struct {
	Whole    int64
	Fraction float64
}

// normalized replaces numbers of all Go types by one that keeps their digits.
func normalized(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range value {
			result[key] = normalized(item)
		}
		return result
	case []any:
		result := []any{}
		for _, item := range value {
			result = append(result, normalized(item))
		}
		return result
	case int:
		return number{Whole: int64(value)}
	case int64:
		return number{Whole: value}
	case uint64:
		return number{Fraction: float64(value)}
	case float64:
		if value == math.Trunc(value) && value >= math.MinInt64 && value < math.MaxInt64 {
			return number{Whole: int64(value)}
		}
		return number{Fraction: value}
	}
	return value
}

// parse reads YAML as kubectl does.
func parse(t *testing.T, content []byte) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		t.Fatalf("sigs.k8s.io/yaml cannot read this: %v\n%s", err, content)
	}
	var object map[string]any
	if err := utiljson.Unmarshal(asJSON, &object); err != nil {
		t.Fatalf("reading JSON: %v\n%s", err, asJSON)
	}
	return object
}

// checkExact encodes an object and reads it back with both parsers.
func checkExact(t *testing.T, object map[string]any) []byte {
	t.Helper()
	encoded, err := encode(object)
	if err != nil {
		t.Fatalf("encode(%#v): %v", object, err)
	}
	sameValue(t, "sigs.k8s.io/yaml\n"+string(encoded), object, parse(t, encoded))
	var direct map[string]any
	if err := yamlv3.Unmarshal(encoded, &direct); err != nil {
		t.Fatalf("yaml.v3 cannot read this: %v\n%s", err, encoded)
	}
	sameValue(t, "yaml.v3\n"+string(encoded), object, direct)
	return encoded
}

func TestStringsAreExactInEveryPlace(t *testing.T) {
	for _, text := range nastyTexts {
		t.Run("", func(t *testing.T) {
			checkExact(t, map[string]any{
				"value": text,
				text:    map[string]any{text: text, "next": "a", "list": []any{text, []any{text, text}, map[string]any{"a": text, text: []any{text}}}},
			})
			checkExact(t, map[string]any{"zlast": text})
		})
	}
}

func FuzzRender(f *testing.F) {
	for _, file := range goldenInputs(f) {
		object, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object)
	}
	for _, text := range nastyTexts {
		object, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{text: text, "a": []any{text}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var object map[string]any
		if err := utiljson.Unmarshal(input, &object); err != nil || len(object) == 0 {
			return
		}
		checkExact(t, object)
		checkRender(t, object)
		checkKustomizeValue(t, object)
	})
}

// checkRender proves that Render leaves its argument alone and changes nothing of its own result.
func checkRender(t *testing.T, object map[string]any) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: object}
	before := obj.DeepCopy()
	first, err := Render(obj)
	if !reflect.DeepEqual(before.Object, object) {
		t.Fatalf("Render changed its argument:\n%s", cmp.Diff(before.Object, object))
	}
	if err != nil {
		return
	}
	second, err := Render(&unstructured.Unstructured{Object: parse(t, first)})
	if err != nil {
		t.Fatalf("rendering the second time: %v\n%s", err, first)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("rendering twice differs:\n%s", cmp.Diff(string(first), string(second)))
	}
}
