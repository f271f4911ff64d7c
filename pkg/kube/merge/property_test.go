// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/merge"
)

// slots are a Deployment with optional fields: values by field names such as a/env/X. A container exists if it has an image.
type slots map[string]string

var (
	containers = []string{"a", "b", "c"}
	variables  = []string{"X", "Y", "Z"}
	values     = []string{"1", "2", "3"}
)

// names are those of all slots. The first ones are always there.
func names() []string {
	all := []string{"replicas", "a/image", "label/p", "label/q"}
	for _, container := range containers {
		all = append(all, container+"/memory", container+"/args")
		for _, variable := range variables {
			all = append(all, container+"/env/"+variable)
		}
	}
	return append(all, "b/image", "c/image")
}

// containerOf returns the container that a slot is in, empty if it is in none.
func containerOf(name string) string {
	if container, _, ok := strings.Cut(name, "/"); ok && container != "label" {
		return container
	}
	return ""
}

// within returns the slots of a container.
func within(container string) []string {
	return slices.DeleteFunc(names(), func(name string) bool { return containerOf(name) != container })
}

func (s slots) object() *unstructured.Unstructured {
	labels := map[string]any{}
	for _, label := range []string{"p", "q"} {
		if value, ok := s["label/"+label]; ok {
			labels[label] = value
		}
	}
	var list []any
	for _, container := range containers {
		if _, ok := s[container+"/image"]; ok {
			list = append(list, s.container(container))
		}
	}
	metadata := map[string]any{"name": "web"}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
		"spec": map[string]any{"replicas": int64(s["replicas"][0] - '0'), "template": map[string]any{"spec": map[string]any{"containers": list}}},
	}}
}

func (s slots) container(name string) map[string]any {
	fields := map[string]any{"name": name, "image": s[name+"/image"]}
	if memory, ok := s[name+"/memory"]; ok {
		fields["resources"] = map[string]any{"limits": map[string]any{"memory": memory}}
	}
	if args, ok := s[name+"/args"]; ok {
		fields["args"] = []any{args}
	}
	var env []any
	for _, variable := range variables {
		if value, ok := s[name+"/env/"+variable]; ok {
			env = append(env, map[string]any{"name": variable, "value": value})
		}
	}
	if env != nil {
		fields["env"] = env
	}
	return fields
}

// read returns the slots of an object, and fails if a container is not whole.
func read(t *testing.T, o *unstructured.Unstructured) slots {
	t.Helper()
	s := slots{}
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	s["replicas"] = fmt.Sprint(replicas)
	for label, value := range o.GetLabels() {
		s["label/"+label] = value
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, item := range list {
		fields := item.(map[string]any)
		name := fields["name"].(string)
		image, ok := fields["image"].(string)
		if !ok {
			t.Fatalf("a container is not whole: %v", fields)
		}
		s[name+"/image"] = image
		if memory, ok, _ := unstructured.NestedString(fields, "resources", "limits", "memory"); ok {
			s[name+"/memory"] = memory
		}
		if args, ok, _ := unstructured.NestedStringSlice(fields, "args"); ok {
			s[name+"/args"] = args[0]
		}
		env, _, _ := unstructured.NestedSlice(fields, "env")
		for _, variable := range env {
			fields := variable.(map[string]any)
			value, ok := fields["value"].(string)
			if !ok {
				t.Fatalf("a variable is not whole: %v", fields)
			}
			s[name+"/env/"+fields["name"].(string)] = value
		}
	}
	return s
}

// edited returns slots with some of them changed at random.
func edited(source *rand.Rand, s slots) slots {
	out := maps.Clone(s)
	// Containers come and go more often than their fields.
	all := append(names(), slices.Repeat([]string{"b/image", "c/image"}, 3)...)
	for range source.Intn(7) {
		name := all[source.Intn(len(all))]
		container := containerOf(name)
		_, exists := out[container+"/image"]
		isImage := container != "" && name == container+"/image"
		switch mayGo := name != "replicas" && name != "a/image" && source.Intn(3) == 0; {
		case isImage && exists && mayGo:
			maps.DeleteFunc(out, func(other, _ string) bool { return containerOf(other) == container })
		case container != "" && !exists && !isImage:
		case mayGo:
			delete(out, name)
		default:
			out[name] = values[source.Intn(len(values))]
		}
	}
	return out
}

// world is what is expected, field by field, with none of the library's sets and paths.
type world struct {
	base, live, desired slots
	// ours and janes are the slots that either owns.
	ours, janes sets.Set[string]
}

func (s slots) is(other slots, name string) bool {
	a, has := s[name]
	b, had := other[name]
	return has == had && a == b
}

func (s slots) has(container string) bool {
	_, ok := s[container+"/image"]
	return ok
}

// janeMakes takes down what jane has made of the live object.
func (w *world) janeMakes(after slots) {
	for _, name := range names() {
		if w.live.is(after, name) {
			continue
		}
		w.ours.Delete(name)
		w.janes.Delete(name)
		if _, ok := after[name]; ok {
			w.janes.Insert(name)
		}
	}
	w.live = after
}

// isChanged reports whether jane has changed a slot, and it is not as desired.
func (w *world) isChanged(name string) bool {
	return !w.ours.Has(name) && !w.live.is(w.base, name) && !w.live.is(w.desired, name)
}

// isDropped reports whether a container is to go.
func (w *world) isDropped(container string) bool {
	return container != "" && w.base.has(container) && w.live.has(container) && !w.desired.has(container)
}

// isRemoved reports whether jane has removed a container that is desired.
func (w *world) isRemoved(container string) bool {
	return container != "" && w.base.has(container) && !w.live.has(container) && w.desired.has(container)
}

// conflicts returns the slots in conflict.
func (w *world) conflicts() sets.Set[string] {
	out := sets.New[string]()
	for _, name := range names() {
		container := containerOf(name)
		isHeld := w.janes.Has(name) && !w.has(w.desired, name) && (w.isDropped(container) || w.has(w.base, name))
		isChanged := w.isChanged(name) || w.isRemoved(container) && !w.live.is(w.desired, name)
		if isHeld || isChanged && !w.base.is(w.desired, name) {
			out.Insert(name)
		}
	}
	return out
}

// after returns what becomes of the live object, with all conflicts taken, or kept.
func (w *world) after(take bool) slots {
	conflicts := w.conflicts()
	out := slots{}
	for _, name := range names() {
		from := w.desired
		container := containerOf(name)
		held := slices.ContainsFunc(within(container), conflicts.Has)
		switch {
		case w.isDropped(container):
			if held && !take {
				from = w.live
			}
		case w.isRemoved(container):
			if !held || !take {
				from = w.live
			}
		case container != "" && !w.desired.has(container) && slices.ContainsFunc(within(container), w.janes.Has):
			from = w.live // The field is not desired, and owned by another manager.
		case conflicts.Has(name) && !take || w.isChanged(name) && !conflicts.Has(name):
			from = w.live
		}
		if value, ok := from[name]; ok {
			out[name] = value
		}
	}
	return out
}

func (w *world) has(s slots, name string) bool {
	_, ok := s[name]
	return ok
}

// applied takes down what the live object has become.
func (w *world) applied(after slots) {
	for _, name := range names() {
		switch {
		case !w.has(after, name):
			w.ours.Delete(name)
			w.janes.Delete(name)
		case !after.is(w.live, name):
			w.janes.Delete(name)
			w.ours.Insert(name)
		case after.is(w.desired, name):
			w.ours.Insert(name)
		case w.janes.Has(name):
			w.ours.Delete(name)
		}
	}
	w.base, w.live = w.desired, after
}

// TestRandomChanges lets jane and a catalog change an object at random, one after the other, and resolves conflicts at random.
func TestRandomChanges(t *testing.T) {
	all := sets.New(names()...)
	found := map[string]int{}
	m := merger()
	for seed := range int64(30) {
		source := rand.New(rand.NewSource(seed))
		first := edited(source, slots{"replicas": "1", "a/image": "1", "a/env/X": "1", "b/image": "1", "b/memory": "1", "b/env/X": "1"})
		s := newServer(t, first.object())
		w := world{base: first, live: first, ours: all.Intersection(sets.KeySet(first)), janes: sets.New[string]()}
		for round := range 8 {
			at := fmt.Sprintf("seed %d, round %d", seed, round)
			edit := edited(source, w.live)
			if !maps.Equal(edit, w.live) {
				o := edit.object()
				o.SetManagedFields(s.live().GetManagedFields())
				s.update("jane", o)
			}
			w.janeMakes(edit)
			w.desired = edited(source, w.base)
			v := merge.Versions{Base: w.base.object(), Live: s.live(), Desired: w.desired.object()}
			result, err := m.Branch(t.Context(), v, merge.Resolution{})
			if err != nil {
				t.Fatal(err)
			}
			if conflicts := w.conflicts(); (len(result.Conflicts) > 0) != (conflicts.Len() > 0) {
				t.Fatalf("%s: %q, want conflicts over %v of\n%+v", at, said(result), conflicts.UnsortedList(), w)
			}
			take := source.Intn(2) == 0
			if len(result.Conflicts) > 0 {
				result = resolved(t, m, v, result.Conflicts, take)
				found["conflicts"]++
			}
			want := w.after(take)
			s.carryOut(result)
			if result.Touched != nil {
				found["touched"]++
				checkTouched(t, m, v.Live, s.live(), result)
			}
			if diff := cmp.Diff(want, read(t, s.live())); diff != "" {
				t.Fatalf("%s: take %v, %q, want -, got +:\n%s\n%+v", at, take, said(result), diff, w)
			}
			checkSettled(t, m, s, v)
			w.applied(want)
			found["merged"]++
			found["removals"] += len(result.Remove)
			found["survivals"] += len(result.Survives)
		}
	}
	t.Log(found)
	for _, what := range []string{"merged", "conflicts", "removals", "survivals", "touched"} {
		if found[what] < 5 {
			t.Errorf("only %d %s: this shows little", found[what], what)
		}
	}
}

// checkTouched checks that a result has changed the fields that it says, and no others.
func checkTouched(t *testing.T, m merge.Merger, before, after *unstructured.Unstructured, result merge.Result) {
	t.Helper()
	differences, err := m.Schemas.Compare(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	changed, touched := sets.New[string](), sets.New[string]()
	for _, difference := range differences {
		changed.Insert(difference.Path.String())
	}
	for path := range result.Touched.All() {
		touched.Insert(fieldpath.Of(path).String())
	}
	if rest := changed.Difference(touched); rest.Len() > 0 {
		t.Errorf("changed %q, which are not among those touched: %q", sets.List(rest), sets.List(touched))
	}
}

// resolved merges again with all conflicts taken, or kept.
func resolved(t *testing.T, m merge.Merger, v merge.Versions, conflicts []merge.Field, take bool) merge.Result {
	t.Helper()
	var r merge.Resolution
	for _, field := range conflicts {
		if take {
			r.Take = append(r.Take, field.Path)
		} else {
			r.Keep = append(r.Keep, field.Path)
		}
	}
	result, err := m.Branch(t.Context(), v, r)
	if err != nil || len(result.Conflicts) > 0 {
		t.Fatalf("resolved: %q %v", said(result), err)
	}
	return result
}
