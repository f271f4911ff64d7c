// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

// model is a Deployment as a map from the paths of its fields to their values. A container exists if it has a name, a variable if it
// has a value.
type model map[string]any

// modelFields are the fields that may exist beside those that every Deployment of the test has.
var modelFields = map[string]func(*rand.Rand) any{
	"/metadata/labels/app":                                       word,
	"/metadata/labels/tier":                                      word,
	"/metadata/annotations/a~1":                                  word,
	"/spec/replicas":                                             number,
	"/spec/minReadySeconds":                                      number,
	"/spec/paused":                                               func(source *rand.Rand) any { return source.Intn(2) == 0 },
	"/spec/template/spec/containers[name=web]/name":              func(*rand.Rand) any { return "web" },
	"/spec/template/spec/containers[name=web]/image":             word,
	"/spec/template/spec/containers[name=web]/command":           words,
	"/spec/template/spec/containers[name=web]/env[name=A]/value": word,
	"/spec/template/spec/containers[name=web]/env[name=B]/value": word,
	"/spec/template/spec/containers[name=log]/name":              func(*rand.Rand) any { return "log" },
	"/spec/template/spec/containers[name=log]/image":             word,
	"/spec/template/spec/containers[name=log]/workingDir":        word,
	"/spec/template/spec/nodeSelector":                           func(source *rand.Rand) any { return map[string]any{"disk": word(source)} },
	"/spec/template/spec/securityContext/runAsUser":              number,
	"/metadata/finalizers[=example.com~1x]":                      func(*rand.Rand) any { return "example.com/x" },
}

func word(source *rand.Rand) any   { return fmt.Sprintf("w%d", source.Intn(4)) }
func number(source *rand.Rand) any { return int64(source.Intn(4)) }
func words(source *rand.Rand) any {
	return slices.Repeat([]any{word(source)}, 1+source.Intn(2))
}

// random returns a model with some of the fields.
func random(source *rand.Rand) model {
	m := model{}
	for _, path := range slices.Sorted(maps.Keys(modelFields)) {
		if source.Intn(3) > 0 {
			m.set(path, modelFields[path](source))
		}
	}
	return m
}

// set sets a field, and the name of the container that it is in.
func (m model) set(path string, value any) {
	m[path] = value
	if item := path[:strings.Index(path, "]")+1]; strings.Contains(item, "containers[") {
		m[item+"/name"] = strings.TrimSuffix(item[strings.Index(item, "=")+1:], "]")
	}
}

// edited returns the model after a few edits.
func (m model) edited(source *rand.Rand) model {
	out := maps.Clone(m)
	all := slices.Sorted(maps.Keys(modelFields))
	for range 1 + source.Intn(4) {
		path := all[source.Intn(len(all))]
		if source.Intn(3) > 0 {
			out.set(path, modelFields[path](source))
		} else if item, isName := strings.CutSuffix(path, "]/name"); isName {
			maps.DeleteFunc(out, func(other string, _ any) bool { return strings.HasPrefix(other, item+"]") })
		} else {
			delete(out, path)
		}
	}
	return out
}

// object builds the object. Lists are in random order.
func (m model) object(source *rand.Rand) *unstructured.Unstructured {
	metadata := map[string]any{"name": "web", "namespace": "shop"}
	pod, spec := map[string]any{}, map[string]any{}
	root := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
	containers := map[string]map[string]any{}
	for path, value := range m {
		parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
		last := strings.NewReplacer("~1", "/").Replace(parts[len(parts)-1])
		switch {
		case strings.Contains(path, "containers["):
			name := path[strings.Index(path, "name=")+5:][:3]
			if containers[name] == nil {
				containers[name] = map[string]any{"name": name}
			}
			if last == "value" {
				env, _ := containers[name]["env"].([]any)
				variable := path[strings.LastIndex(path, "name=")+5:][:1]
				containers[name]["env"] = append(env, map[string]any{"name": variable, "value": value})
			} else {
				containers[name][last] = value
			}
		case strings.HasPrefix(path, "/metadata/finalizers"):
			metadata["finalizers"] = []any{value}
		case parts[0] == "metadata":
			child(metadata, parts[1])[last] = value
		case len(parts) == 2:
			spec[last] = value
		case len(parts) == 4:
			pod[last] = value
		default:
			child(pod, parts[3])[last] = value
		}
	}
	var list []any
	for _, container := range containers {
		if env, ok := container["env"].([]any); ok {
			source.Shuffle(len(env), func(i, j int) { env[i], env[j] = env[j], env[i] })
		}
		list = append(list, container)
	}
	if len(list) > 0 {
		source.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		pod["containers"] = list
	}
	if len(pod) > 0 {
		spec["template"] = map[string]any{"spec": pod}
	}
	return (&unstructured.Unstructured{Object: root}).DeepCopy()
}

func child(parent map[string]any, name string) map[string]any {
	if parent[name] == nil {
		parent[name] = map[string]any{}
	}
	return parent[name].(map[string]any)
}

// unit returns the list item or field that is undone as one: an item that exists in only one of two models is.
func unit(path string, before, after model) string {
	for _, end := range []string{"[name=web]", "[name=log]", "[name=A]", "[name=B]"} {
		if at := strings.Index(path, end); at >= 0 {
			item := path[:at+len(end)]
			if before.has(item) != after.has(item) {
				return item
			}
		}
	}
	return path
}

func (m model) has(prefix string) bool { return len(m.below(prefix)) > 0 }

// below returns the fields at a path and below it.
func (m model) below(prefix string) model {
	out := model{}
	for path, value := range m {
		if path == prefix || strings.HasPrefix(path, prefix+"/") || strings.HasPrefix(path, prefix+"[") {
			out[path] = value
		}
	}
	return out
}

// expected returns what undo must return: the model, and the conflicts.
func expected(before, after, now model) (model, []string) {
	out, conflicts := maps.Clone(now), map[string]bool{}
	for path := range modelFields {
		if reflect.DeepEqual(before[path], after[path]) {
			continue
		}
		at := unit(path, before, after)
		was, is, has := before.below(at), after.below(at), now.below(at)
		switch {
		case reflect.DeepEqual(was, has):
		case !reflect.DeepEqual(is, has) || lost(at, after, now):
			conflicts[at] = true
		default:
			maps.DeleteFunc(out, func(path string, _ any) bool { _, in := has[path]; return in })
			maps.Copy(out, was)
		}
	}
	return out, slices.Sorted(maps.Keys(conflicts))
}

// lost reports whether a map or item that contains a field does not exist any more.
func lost(path string, after, now model) bool {
	for i, char := range path {
		if i > len("/metadata") && (char == '/' || char == '[') && after.has(path[:i]) && !now.has(path[:i]) {
			return true
		}
	}
	return false
}

// TestUndoRandomChanges undoes random changes of random objects after random later edits.
func TestUndoRandomChanges(t *testing.T) {
	schemas := diff.NewSchemas(nil, clock.RealClock{})
	undone, conflicted := 0, 0
	for seed := range int64(4000) {
		source := rand.New(rand.NewSource(seed))
		before := random(source)
		after := before.edited(source)
		now := after
		for range source.Intn(3) {
			now = now.edited(source)
		}
		was, is, has := before.object(source), after.object(source), now.object(source)
		got, err := restore.Undo(t.Context(), schemas, was, is, has)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want, conflicts := expected(before, after, now)
		var named []string
		for _, path := range got.Conflicts {
			named = append(named, path.String())
		}
		slices.Sort(named)
		if difference := cmp.Diff(conflicts, named); difference != "" {
			t.Fatalf("seed %d: conflicts (-want +got)\n%s\nbefore %v\nafter %v\nnow %v", seed, difference, before, after, now)
		}
		if len(conflicts) > 0 {
			conflicted++
			continue
		}
		undone++
		left, err := schemas.Compare(t.Context(), want.object(source), got.Content)
		if err != nil || len(left) > 0 {
			t.Fatalf("seed %d: %v\ndifferences %v\nbefore %v\nafter %v\nnow %v\ngot %v", seed, err, left, before, after, now, got.Content.Object)
		}
	}
	if undone < 500 || conflicted < 500 {
		t.Errorf("%d undone, %d with conflicts: the objects are not random enough", undone, conflicted)
	}
}
