// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

const comparedDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels:
    app: web
spec:
  replicas: 3
  template:
    spec:
      containers:
      - image: web:1
        name: web
        args:
        - --verbose
        ports:
        - containerPort: 80
      - env:
        - name: MODE
          value: fast
        image: proxy:1
        name: proxy
      tolerations: []
`

func TestDifferences(t *testing.T) {
	change := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(comparedDeployment) }
	for name, tt := range map[string]struct {
		after          string
		fields         []string
		added, removed int
	}{
		"nothing":            {comparedDeployment, nil, 0, 0},
		"a value":            {change("replicas: 3", "replicas: 5"), []string{"/spec/replicas"}, 1, 1},
		"in a list item":     {change("web:1", "web:2"), []string{"/spec/template/spec/containers[name=web]/image"}, 1, 1},
		"nested list items":  {change("fast", "slow"), []string{"/spec/template/spec/containers[name=proxy]/env[name=MODE]/value"}, 1, 1},
		"a list of scalars":  {change("--verbose", "--quiet"), []string{"/spec/template/spec/containers[name=web]/args"}, 1, 1},
		"a list of maps":     {change("containerPort: 80", "containerPort: 81"), []string{"/spec/template/spec/containers[name=web]/ports"}, 1, 1},
		"an added map":       {change("  labels:\n", "  annotations:\n    a: b\n    c: d\n  labels:\n"), []string{"/metadata/annotations"}, 3, 0},
		"an added field":     {change("    app: web\n", "    app: web\n    b/c: d\n"), []string{"/metadata/labels/b~1c"}, 1, 0},
		"a removed field":    {change("  replicas: 3\n", ""), []string{"/spec/replicas"}, 0, 1},
		"a scalar for a map": {change("  template:\n    spec:\n", "  template: none\n  z:\n    spec:\n"), []string{"/spec/template", "/spec/z"}, 2, 1},
		"a renamed item": {
			change("        name: proxy\n", "        name: envoy\n"),
			[]string{"/spec/template/spec/containers[name=envoy]", "/spec/template/spec/containers[name=proxy]"}, 1, 1,
		},
		"an item without a name": {
			change("        name: proxy\n", ""), []string{"/spec/template/spec/containers"}, 0, 1,
		},
		"another order": {
			change("      - image: web:1\n        name: web\n        args:\n        - --verbose\n        ports:\n        - containerPort: 80\n", "",
				"        name: proxy\n", "        name: proxy\n      - image: web:1\n        name: web\n        args:\n        - --verbose\n"+
					"        ports:\n        - containerPort: 80\n"),
			[]string{"/spec/template/spec/containers"}, 0, 0,
		},
		"a filled list":  {change("tolerations: []", "tolerations:\n      - key: a"), []string{"/spec/template/spec/tolerations"}, 2, 1},
		"a text":         {change("replicas: 3", "replicas: |\n    a\n\n    b"), []string{"/spec/replicas"}, 4, 1},
		"everything":     {"", []string{"/apiVersion", "/kind", "/metadata", "/spec"}, 0, 24},
		"everything new": {"a: 1\n", []string{"/a", "/apiVersion", "/kind", "/metadata", "/spec"}, 1, 24},
	} {
		before, after := []byte(comparedDeployment), []byte(tt.after)
		for _, got := range [][]string{DifferingFields(before, after), DifferingFields(after, before)} {
			if diff := cmp.Diff(tt.fields, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		added, removed := CountLines(before, after)
		addedBack, removedBack := CountLines(after, before)
		if added != tt.added || removed != tt.removed || addedBack != removed || removedBack != added {
			t.Errorf("%s: %d lines added and %d removed, back %d and %d", name, added, removed, addedBack, removedBack)
		}
	}
}

// randomObjects makes objects of maps, lists with and without names, and texts that are hard to write.
type randomObjects struct{ *rand.Rand }

func (r randomObjects) text() string {
	if r.IntN(3) > 0 {
		return string(rune('a' + r.IntN(6)))
	}
	return nastyTexts[r.IntN(len(nastyTexts))]
}

func (r randomObjects) value(depth int) any {
	switch kind := r.IntN(8); {
	case depth > 4 || kind < 3:
		return []any{r.text(), int64(r.IntN(4)), r.IntN(2) == 0, nil, 1.5}[r.IntN(5)]
	case kind < 6:
		return r.object(depth + 1)
	case kind == 6:
		var items []any
		for range r.IntN(3) {
			items = append(items, r.value(depth+1))
		}
		return append([]any{}, items...)
	}
	items := []any{}
	for range r.IntN(4) {
		item := r.object(depth + 1)
		item["name"] = r.text()
		items = append(items, item)
	}
	return items
}

func (r randomObjects) object(depth int) map[string]any {
	object := map[string]any{}
	for range r.IntN(4) {
		object[r.text()] = r.value(depth)
	}
	return object
}

// edit changes some values of an object in place.
func (r randomObjects) edit(object map[string]any) {
	for key, value := range object {
		switch nested, isMap := value.(map[string]any); {
		case r.IntN(8) == 0:
			object[key] = r.value(2)
		case r.IntN(12) == 0:
			delete(object, key)
		case isMap:
			r.edit(nested)
		}
		if items, isList := value.([]any); isList {
			if r.IntN(4) == 0 {
				r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
			}
			for _, item := range items {
				if nested, isMap := item.(map[string]any); isMap {
					r.edit(nested)
				}
			}
		}
	}
}

// difference is the expected result of DifferingFields: the paths at which two decoded values differ.
func difference(path fieldpath.Path, a, b any, found map[string]struct{}) {
	mapA, okA := a.(map[string]any)
	mapB, okB := b.(map[string]any)
	if okA && okB && len(mapA) > 0 && len(mapB) > 0 {
		for key := range maps.All(union(mapA, mapB)) {
			differenceAt(append(slices.Clone(path), fieldpath.Step{Field: key}), mapA, mapB, key, found)
		}
		return
	}
	itemsA, itemsB := named(a), named(b)
	if itemsA != nil && itemsB != nil {
		if reordered(a, b) {
			found[path.String()] = struct{}{}
		}
		for name := range maps.All(union(itemsA, itemsB)) {
			step := fieldpath.Step{Keys: []fieldpath.Key{{Name: "name", Text: name}}}
			differenceAt(append(slices.Clone(path), step), itemsA, itemsB, name, found)
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		found[path.String()] = struct{}{}
	}
}

func differenceAt(path fieldpath.Path, a, b map[string]any, key string, found map[string]struct{}) {
	valueA, inA := a[key]
	valueB, inB := b[key]
	if !inA || !inB {
		found[path.String()] = struct{}{}
		return
	}
	difference(path, valueA, valueB, found)
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// named returns the items of a list by name; nil if one has no name that fits on one line, or two have the same.
func named(value any) map[string]any {
	items, _ := value.([]any)
	byName := map[string]any{}
	for _, item := range items {
		object, _ := item.(map[string]any)
		name, ok := nameIn(object)
		if _, twice := byName[name]; !ok || twice || styleOf(name) == literal {
			return nil
		}
		byName[name] = object
	}
	if len(byName) == 0 {
		return nil
	}
	return byName
}

// reordered reports whether two lists have items of the same names in another order.
func reordered(a, b any) bool {
	var names [2][]string
	for i, list := range []any{a, b} {
		for _, item := range list.([]any) {
			name, _ := nameIn(item.(map[string]any))
			names[i] = append(names[i], name)
		}
	}
	if slices.Equal(names[0], names[1]) {
		return false
	}
	slices.Sort(names[0])
	slices.Sort(names[1])
	return slices.Equal(names[0], names[1])
}

// nameIn returns the name of a list item as text.
func nameIn(object map[string]any) (name string, ok bool) {
	switch value := object["name"].(type) {
	case string:
		return value, true
	case nil:
		_, ok = object["name"]
		return "null", ok
	case map[string]any, []any:
		return "", false
	case number:
		if value.Fraction != 0 {
			return fmt.Sprint(value.Fraction), true
		}
		return fmt.Sprint(value.Whole), true
	default:
		return fmt.Sprint(value), true
	}
}

// TestFindsWhatDiffers compares random objects with edited copies. The expected paths come from the objects, not from their text.
func TestFindsWhatDiffers(t *testing.T) {
	seed := rand.Uint64()
	r := randomObjects{rand.New(rand.NewPCG(seed, 0))}
	for range 5000 {
		before := r.object(0)
		old, err := encode(before)
		if err != nil {
			continue // A text that is not UTF-8.
		}
		var copied map[string]any
		if copied = parse(t, old); copied == nil {
			continue
		}
		r.edit(copied)
		changed, err := encode(copied)
		if err != nil {
			continue
		}
		want := map[string]struct{}{}
		difference(nil, normalized(parse(t, old)), normalized(parse(t, changed)), want)
		delete(want, "") // One of the objects is empty.
		if len(before) == 0 || len(copied) == 0 {
			continue
		}
		got := DifferingFields(old, changed)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" && len(want)+len(got) > 0 {
			t.Fatalf("seed %d (-want +got):\n%s\n--- before\n%s\n--- after\n%s", seed, diff, old, changed)
		}
		for _, path := range got {
			if _, err := fieldpath.Parse(path); err != nil {
				t.Fatalf("seed %d: %s is no path: %v", seed, path, err)
			}
		}
	}
}

// FuzzDifferences compares any texts: a file may have been edited in Git.
func FuzzDifferences(f *testing.F) {
	f.Add([]byte(comparedDeployment), []byte("- - - a\n? b\n:\n\"\n'\nc: |\n"))
	f.Add([]byte("a:\n- name: |\n- name: \n-\n"), []byte("? \n: x\n\"a: b\n"))
	f.Add([]byte("a:\n- name: "), []byte("0"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		if there, back := DifferingFields(before, after), DifferingFields(after, before); !slices.Equal(there, back) {
			t.Errorf("there: %q, back: %q", there, back)
		}
		added, removed := CountLines(before, after)
		if addedBack, removedBack := CountLines(after, before); addedBack != removed || removedBack != added {
			t.Errorf("there: %d and %d lines, back: %d and %d", added, removed, addedBack, removedBack)
		}
	})
}

func BenchmarkDifferingFields(b *testing.B) {
	before := []byte(comparedDeployment + "status:\n" + strings.Repeat("  a:\n    b: c\n", 1))
	for i := range 30 {
		before = fmt.Appendf(before, "x%d:\n  image: registry.example.com/shop/api:1.2.3\n", i)
	}
	after := bytes.Replace(before, []byte("web:1"), []byte("web:2"), 1)
	b.SetBytes(int64(len(before)))
	for b.Loop() {
		DifferingFields(before, after)
	}
}

// TestDifferencesAreBounded compares files that are nested deeply, which Render would not write.
func TestDifferencesAreBounded(t *testing.T) {
	var deep bytes.Buffer
	for i := range 1500 {
		fmt.Fprintf(&deep, "%sa:\n", strings.Repeat("  ", i))
	}
	list := bytes.Repeat([]byte("- "), 1<<20)
	for _, before := range [][]byte{deep.Bytes(), append([]byte("a:\n"), list...), list, bytes.Repeat([]byte("? "), 1<<20)} {
		if got := DifferingFields(before, []byte("b: 1\n")); len(got) == 0 {
			t.Error("no field differs")
		}
	}
	var long bytes.Buffer
	for i := range 90 {
		fmt.Fprintf(&long, "%s%s:\n", strings.Repeat("  ", i), strings.Repeat("k", 4000))
	}
	for i := range 10_000 {
		fmt.Fprintf(&long, "%sk%d: v\n", strings.Repeat("  ", 90), i)
	}
	f := flatten(linesOf(long.Bytes()))
	if !f.tooLarge() || f.bytes > 2*maxPaths {
		t.Errorf("the paths take %d bytes", f.bytes)
	}
	if got := DifferingFields(long.Bytes(), []byte("a: 1\n")); got != nil {
		t.Errorf("%d fields", len(got))
	}
	if got := DifferingFields(deep.Bytes(), bytes.Replace(deep.Bytes(), []byte("a:\n"), []byte("b:\n"), 1)); len(got) != 2 {
		t.Errorf("%d fields", len(got))
	}
}
