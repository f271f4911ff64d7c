// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/patch"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: 0c2f
  labels: {app: web, tier: front}
  finalizers: [example.com/a, example.com/b]
spec:
  replicas: 3
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  template:
    metadata:
      creationTimestamp: null
    spec:
      tolerations: [{key: a, operator: Exists}]
      containers:
      - name: web
        image: web:1
        args: [a, b]
        env: [{name: LEVEL, value: info}, {name: MODE, value: live}]
        ports: [{containerPort: 80, protocol: TCP}]
        resources: {limits: {cpu: "1"}}
      - name: sidecar
        image: proxy:1
status:
  replicas: 3
`

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 1, weight: 1.5, big: 9007199254740993, parts: [{name: a}, {name: b}]}
`

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	converted, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(converted, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func compile(t testing.TB, patches ...patch.Patch) patch.Patches {
	t.Helper()
	compiled, errs := patch.Compile(patches, field.NewPath("spec", "patches"))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return compiled
}

func on(kind string, how patch.Type, text string) patch.Patch {
	return patch.Patch{Target: patch.Target{Kind: kind}, Type: how, Patch: text}
}

// asYAML shows an object as lines.
func asYAML(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	out, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(out), "\n")
}

// changes returns the lines that differ, "- " before removed lines and "+ " before new ones.
func changes(before, after []string) []string {
	var out []string
	count := map[string]int{}
	for _, line := range before {
		count[line]++
	}
	for _, line := range after {
		if count[line]--; count[line] < 0 {
			out = append(out, "+ "+strings.TrimSpace(line))
		}
	}
	for _, line := range before {
		if count[line] > 0 {
			count[line]--
			out = append(out, "- "+strings.TrimSpace(line))
		}
	}
	return out
}

func TestApply(t *testing.T) {
	tests := map[string]struct {
		object string
		patch  patch.Patch
		want   []string
		// again says that applying it twice is an error or another change.
		again bool
	}{
		"containers are found by name": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {template: {spec: {containers: [{name: web, image: 'web:2'}]}}}"), []string{"+ image: web:2", "- image: web:1"}, false},
		"so is env": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {template: {spec: {containers: [{name: web, env: [{name: LEVEL, value: debug}]}]}}}"),
			[]string{"+ value: debug", "- value: info"}, false},
		"an item is deleted": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {template: {spec: {containers: [{name: sidecar, $patch: delete}]}}}"), []string{"- - image: proxy:1", "- name: sidecar"}, false},
		"a map is replaced": {deployment, on("Deployment", patch.StrategicMerge,
			"metadata: {labels: {$patch: replace, app: web}}"), []string{"- tier: front"}, false},
		"keys are retained": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {strategy: {$retainKeys: [type], type: Recreate}}"),
			[]string{"+ type: Recreate", "- rollingUpdate:", "- maxSurge: 1", "- type: RollingUpdate"}, false},
		"no directive stays in a new item": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {template: {spec: {containers: [{name: new, image: i, resources: {$patch: replace, limits: {memory: 1Gi}}, "+
				"securityContext: {$patch: delete}}]}}}"),
			[]string{"+ - image: i", "+ name: new", "+ resources:", "+ limits:", "+ memory: 1Gi"}, false},
		"a list without keys is replaced": {deployment, on("Deployment", patch.StrategicMerge,
			"spec: {template: {spec: {tolerations: [{key: b}]}}}"), []string{"+ - key: b", "- - key: a", "- operator: Exists"}, false},
		"null deletes": {deployment, on("Deployment", patch.StrategicMerge, "spec: {replicas: null}"), []string{"- replicas: 3"}, false},
		"JSON with tabs and escapes": {
			deployment, on("Deployment", patch.StrategicMerge, "{\n\t\"metadata\": {\"annotations\": {\"a\\/b\": \"\\u00e9\"}}}"),
			[]string{"+ annotations:", "+ a/b: é"}, false,
		},
		"merge replaces lists": {deployment, on("Deployment", patch.Merge, "spec: {template: {spec: {containers: [{name: web}]}}}"), []string{
			"+ - name: web", "- - args:", "- - a", "- - b", "- env:", "- - name: LEVEL", "- value: info", "- - name: MODE", "- value: live",
			"- image: web:1", "- name: web", "- ports:", "- - containerPort: 80", "- protocol: TCP", "- resources:", "- limits:",
			"- cpu: \"1\"", "- - image: proxy:1", "- name: sidecar"}, false},
		"merge keeps numbers as they are": {widget, on("Widget", patch.Merge, "spec: {size: 2}"), []string{"+ size: 2", "- size: 1"}, false},
		"operations": {deployment, on("Deployment", patch.JSON6902, `
- {op: test, path: /metadata/name, value: web}
- {op: replace, path: /spec/replicas, value: 1}
- {op: remove, path: /metadata/labels/tier}
- {op: add, path: /metadata/annotations, value: {a/b: x}}
- {op: add, path: /metadata/annotations/c~1d, value: z}`),
			[]string{"+ annotations:", "+ a/b: x", "+ c/d: z", "- tier: front", "+ replicas: 1", "- replicas: 3"}, true},
		"operations on lists": {deployment, on("Deployment", patch.JSON6902, `
- {op: replace, path: /spec/template/spec/containers/0/args/0, value: c}
- {op: add, path: /spec/template/spec/containers/0/args/-, value: d}
- {op: move, from: /spec/template/spec/containers/1/image, path: /spec/template/spec/containers/0/image}
- {op: copy, from: /spec/template/spec/containers/0/image, path: /spec/template/spec/containers/1/image}`),
			[]string{"+ - c", "+ - d", "+ image: proxy:1", "- - a", "- image: web:1"}, true},
		"of another kind": {deployment, on("StatefulSet", patch.Merge, "spec: {replicas: 1}"), nil, false},
		"of another group": {
			deployment,
			patch.Patch{Target: patch.Target{Kind: "Deployment", Group: ptr.To("extensions")}, Type: patch.Merge, Patch: "spec: {replicas: 1}"},
			nil, false,
		},
		"of another name": {
			deployment, patch.Patch{Target: patch.Target{Kind: "Deployment", Name: "api"}, Type: patch.Merge, Patch: "spec: {replicas: 1}"},
			nil, false,
		},
		"by labels": {deployment, patch.Patch{Target: patch.Target{Kind: "Deployment", Group: ptr.To("apps"), Name: "web",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}}, Type: patch.Merge, Patch: "spec: {replicas: 1}"},
			[]string{"+ replicas: 1", "- replicas: 3"}, false},
		"by other labels": {deployment, patch.Patch{Target: patch.Target{Kind: "Deployment",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "back"}}}, Type: patch.Merge, Patch: "spec: {replicas: 1}"},
			nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := object(t, tt.object)
			patches := compile(t, tt.patch)
			after, err := patches.Apply(before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tt.object).Object, before.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
			if got := changes(asYAML(t, before), asYAML(t, after)); !sameLines(got, tt.want) {
				t.Errorf("changed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if twice, err := patches.Apply(after); !tt.again && (err != nil || !cmp.Equal(after.Object, twice.Object)) {
				t.Errorf("a second time: %v\n%s", err, cmp.Diff(after.Object, twice))
			}
		})
	}
}

func sameLines(a, b []string) bool {
	return cmp.Equal(a, b, cmp.Transformer("sorted", func(lines []string) map[string]int {
		count := map[string]int{}
		for _, line := range lines {
			count[line]++
		}
		return count
	}))
}

// A patch that goes through JSON makes 1 of 1.0, which is not a change of what it must not change.
func TestStatusIsTheSameInOtherNumbers(t *testing.T) {
	before := object(t, widget)
	before.Object["status"] = map[string]any{"ratio": float64(1)}
	after, err := compile(t, on("Widget", patch.Merge, "spec: {size: 2}")).Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	if size, _, err := unstructured.NestedInt64(after.Object, "spec", "size"); size != 2 || err != nil {
		t.Errorf("size is %d (%v)", size, err)
	}
}

func TestPatchesApplyInOrder(t *testing.T) {
	patches := compile(t,
		on("Deployment", patch.Merge, "spec: {replicas: 1}"),
		on("Deployment", patch.JSON6902, "[{op: test, path: /spec/replicas, value: 1}, {op: replace, path: /spec/replicas, value: 2}]"),
		on("Deployment", patch.StrategicMerge, "metadata: {labels: {tier: back}}"),
		patch.Patch{Target: patch.Target{
			Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}},
		},
			Type: patch.Merge, Patch: "spec: {paused: true}"})
	got, err := patches.Apply(object(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"- replicas: 3", "+ replicas: 2", "- tier: front", "+ tier: back", "+ paused: true"}
	if lines := changes(asYAML(t, object(t, deployment)), asYAML(t, got)); !sameLines(lines, want) {
		t.Errorf("changed %q, want %q", lines, want)
	}
}

func manyFields(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "field%d: 1, ", i)
	}
	return out.String()
}

// doubling are operations that double what is in spec, each.
func doubling(times int) string {
	var out strings.Builder
	for i := range times {
		fmt.Fprintf(&out, ", {op: copy, from: /spec, path: /spec/again%d}", i)
	}
	return out.String()
}

func TestApplyRefuses(t *testing.T) {
	tests := map[string]struct {
		object string
		patch  patch.Patch
		want   string
	}{
		"a test": {
			deployment, on("Deployment", patch.JSON6902, "[{op: test, path: /spec/replicas, value: 4}]"),
			"operation [0] (test /spec/replicas): the object has another value there",
		},
		"nothing to remove": {
			deployment, on("Deployment", patch.JSON6902, "[{op: remove, path: /spec/paused}]"),
			"operation [0] (remove /spec/paused): the object does not have that path",
		},
		"nothing to replace": {
			deployment, on("Deployment", patch.JSON6902, "[{op: replace, path: /spec/paused, value: true}]"), "does not have that path",
		},
		"nothing to copy": {
			deployment, on("Deployment", patch.JSON6902, "[{op: copy, from: /spec/a, path: /spec/b}]"), "does not have /spec/a",
		},
		"nothing to move": {
			deployment, on("Deployment", patch.JSON6902, "[{op: move, from: /spec/a, path: /spec/b}]"), "does not have /spec/a",
		},
		"nowhere to add": {
			deployment, on("Deployment", patch.JSON6902, "[{op: add, path: /spec/a/b, value: 1}]"), "does not have that path",
		},
		"below null": {
			deployment, on("Deployment", patch.JSON6902, "[{op: add, path: /spec/template/metadata/creationTimestamp/b, value: 1}]"),
			"does not have that path",
		},
		"past the end": {
			deployment, on("Deployment", patch.JSON6902, "[{op: replace, path: /spec/template/spec/containers/2, value: {}}]"),
			"does not have that path",
		},
		"after the end": {
			deployment, on("Deployment", patch.JSON6902, "[{op: replace, path: /spec/template/spec/containers/-, value: {}}]"),
			"does not have that path",
		},
		"no kind of Kubernetes": {
			widget, patch.Patch{Target: patch.Target{Kind: "Deployment"}, Type: patch.StrategicMerge, Patch: "spec: {replicas: 1}"}, "",
		},
		"growth": {widget, on("Widget", patch.JSON6902,
			"[{op: add, path: /spec/text, value: "+strings.Repeat("x", 60<<10)+"}"+doubling(8)+"]"),
			"makes the object larger than 3145728 bytes"},
		"another object's type": {
			strings.Replace(deployment, "apps/v1", "example.com/v1", 1), on("Deployment", patch.StrategicMerge, "spec: {replicas: 1}"),
			"must be of type Merge or JSON6902: Deployment is not built into Kubernetes",
		},
		"another version's field": {"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {}}",
			on("HorizontalPodAutoscaler", patch.StrategicMerge, "spec: {behavior: {scaleDown: {stabilizationWindowSeconds: 1}}}"),
			`must fit HorizontalPodAutoscaler of autoscaling/v1`},
		"a shape that the type does not have": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: {containers: [{name: {a: hidden}}]}}}}",
			on("Deployment", patch.StrategicMerge, "spec: {template: {spec: {containers: [{name: web}]}}}"),
			"the object is not of the shape of a Deployment of apps/v1",
		},
		"a key that is not retained": {
			deployment, on("Deployment", patch.StrategicMerge, "spec: {strategy: {$retainKeys: [rollingUpdate], type: Recreate}}"),
			"$retainKeys must name every field",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := object(t, tt.object)
			_, err := compile(t, on(before.GetKind(), patch.Merge, "metadata: {labels: {x: z}}"), tt.patch).Apply(before)
			if tt.want == "" {
				if err != nil {
					t.Fatalf("not for this object, and yet: %v", err)
				}
				return
			}
			prefix := "apply patches[1] (" + string(tt.patch.Type) + ") to " + before.GetKind() + ` "` + before.GetName() + `": `
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v, want %s...%s", err, prefix, tt.want)
			}
			if diff := cmp.Diff(object(t, tt.object).Object, before.Object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	deploymentTarget := patch.Target{Kind: "Deployment"}
	text := func(how patch.Type, text string) patch.Patch {
		return patch.Patch{Target: deploymentTarget, Type: how, Patch: text}
	}
	target := func(target patch.Target) patch.Patch {
		return patch.Patch{Target: target, Type: patch.Merge, Patch: "spec: {a: b}"}
	}
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	bomb := "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nspec: [*b,*b,*b,*b,*b]\n"
	tests := map[string]struct {
		patch patch.Patch
		want  string
	}{
		"no kind": {target(patch.Target{}), "p[1].target.kind: Required value: name the kind"},
		"a wrong kind": {
			target(patch.Target{Kind: "deployments"}), `p[1].target.kind: Invalid value: "deployments": must be a kind such as Deployment`,
		},
		"a wrong group": {target(patch.Target{Kind: "Deployment", Group: ptr.To("Apps!")}), "p[1].target.group: Invalid value"},
		"a wrong name":  {target(patch.Target{Kind: "Deployment", Name: "a/b"}), "p[1].target.name: Invalid value"},
		"a wrong selector": {
			target(patch.Target{Kind: "Deployment", LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}},
			}}),
			"p[1].target.labelSelector.matchExpressions[0].operator: Invalid value",
		},
		"no type": {text("", "spec: {}"), "p[1].type: Required value: must be StrategicMerge, JSON6902 or Merge"},
		"a wrong type": {
			text("Strategic", "spec: {}"), `p[1].type: Unsupported value: "Strategic": supported values: "StrategicMerge", "JSON6902", "Merge"`,
		},
		"no patch":             {text(patch.Merge, " \n"), "p[1].patch: Required value: the patch, as YAML or JSON"},
		"a comment":            {text(patch.Merge, "# nothing"), "p[1].patch: Invalid value: must be YAML or JSON"},
		"no YAML":              {text(patch.Merge, "a: b: c"), "p[1].patch: Invalid value: must be YAML or JSON"},
		"not a map":            {text(patch.Merge, "[1]"), "p[1].patch: Invalid value: must be a part of an object"},
		"null":                 {text(patch.Merge, "null"), "p[1].patch: Invalid value: must be a part of an object"},
		"not a map, strategic": {text(patch.StrategicMerge, "- a"), "p[1].patch: Invalid value: must be a part of an object"},
		"not a list":           {text(patch.JSON6902, "{op: add}"), "p[1].patch: Invalid value: must be a list of operations"},
		"nothing":              {text(patch.Merge, "{}"), "p[1].patch: Invalid value: must change something"},
		"no operation":         {text(patch.JSON6902, "[]"), "p[1].patch: Invalid value: must have 1 to 100 operations, has 0"},
		"many operations": {
			text(patch.JSON6902, "["+strings.Repeat("{op: remove, path: /spec},", 101)+"]"), "must have 1 to 100 operations, has 101",
		},
		"long": {
			text(patch.Merge, "a: "+strings.Repeat("x", 64<<10)), "p[1].patch: Too long: may not be more than 65536 bytes",
		},
		"two documents":           {text(patch.Merge, "spec: {}\n---\nspec: {}\n"), "must be one document"},
		"a bad second document":   {text(patch.Merge, "spec: {a: b}\n---\n{"), "must be one document"},
		"two JSON documents":      {text(patch.Merge, `{"spec": {"a": 1}} {"spec": {"a": 1}}`), "p[1].patch: Invalid value: must be"},
		"aliases":                 {text(patch.Merge, bomb), "must not use YAML aliases"},
		"a merge key":             {text(patch.Merge, "spec: {a: &x {b: c}, d: {<<: *x}}"), "must not use YAML aliases"},
		"depth":                   {text(patch.Merge, "spec: "+deep), "p[1].patch: Invalid value: must be YAML or JSON"},
		"depth in JSON":           {text(patch.Merge, `{"spec": `+deep+"}"), "p[1].patch: Invalid value: must be YAML or JSON"},
		"a key twice":             {text(patch.Merge, "spec: {a: hidden, a: hidden}"), `"a" already set in map`},
		"many keys twice":         {text(patch.Merge, "spec: {"+strings.Repeat("a: 1, b: 2, ", 1000)+"}"), `"a" already set in map`},
		"many keys twice in JSON": {text(patch.Merge, `{"spec": {"a": 1`+strings.Repeat(`, "a": 1`, 1000)+"}}"), `duplicate field "spec.a"`},
		"many unknown fields":     {text(patch.StrategicMerge, "spec: {"+manyFields(1000)+"}"), `unknown field "spec.field`},
		"a key twice in JSON":     {text(patch.Merge, `{"spec": {"a": "hidden", "a": "hidden"}}`), `duplicate field "spec.a"`},
		"apiVersion":              {text(patch.Merge, "apiVersion: apps/v1"), "must not change apiVersion: patches change neither"},
		"kind":                    {text(patch.StrategicMerge, "kind: Deployment"), "must not change kind"},
		"status":                  {text(patch.Merge, "status: {a: b}"), "must not change status"},
		"name":                    {text(patch.Merge, "metadata: {name: hidden}"), "must not change metadata.name"},
		"namespace":               {text(patch.StrategicMerge, "metadata: {namespace: hidden}"), "must not change metadata.namespace"},
		"uid":                     {text(patch.Merge, "metadata: {uid: hidden}"), "must not change metadata.uid"},
		"metadata":                {text(patch.Merge, "metadata: null"), "must not change metadata:"},
		"metadata replaced":       {text(patch.StrategicMerge, "metadata: {$patch: replace, labels: {}}"), "must not change metadata.$patch"},
		"all replaced":            {text(patch.StrategicMerge, "{$patch: replace, spec: {}}"), "must not change the object as a whole"},
		"all but some":            {text(patch.StrategicMerge, "{$retainKeys: [spec], spec: {}}"), "must not change the object as a whole"},
		"the whole by operation": {
			text(patch.JSON6902, "[{op: replace, path: '', value: {}}]"), "operation [0] must not change the object as a whole",
		},
		"name by operation": {
			text(patch.JSON6902, "[{op: test, path: /metadata/uid, value: x}, {op: replace, path: /metadata/name, value: hidden}]"),
			"operation [1] must not change metadata.name",
		},
		"name moved": {
			text(patch.JSON6902, "[{op: move, from: /metadata/name, path: /spec/name}]"), "operation [0] must not change metadata.name",
		},
		"metadata by operation": {text(patch.JSON6902, "[{op: remove, path: /metadata}]"), "operation [0] must not change metadata:"},
		"status by operation":   {text(patch.JSON6902, "[{op: add, path: /status/a, value: 1}]"), "operation [0] must not change status"},
		"no op": {
			text(patch.JSON6902, "[{path: /spec}]"), "operation [0] must have an op: add, remove, replace, move, copy or test",
		},
		"an unknown op":       {text(patch.JSON6902, "[{op: set, path: /spec, value: hidden}]"), "operation [0] must have an op"},
		"no operation at all": {text(patch.JSON6902, "[hidden]"), "operation [0] must have an op"},
		"no value":            {text(patch.JSON6902, "[{op: add, path: /spec/a}]"), "operation [0] (add) must have path and value"},
		"no path":             {text(patch.JSON6902, "[{op: remove}]"), "operation [0] (remove) must have path"},
		"no from":             {text(patch.JSON6902, "[{op: copy, path: /spec/a}]"), "operation [0] (copy) must have from and path"},
		"no pointer":          {text(patch.JSON6902, "[{op: remove, path: spec/a}]"), "a path is a JSON pointer such as /spec/replicas"},
		"a bad escape":        {text(patch.JSON6902, "[{op: remove, path: /spec/a~2}]"), "a path is a JSON pointer"},
		"more than it takes": {
			text(patch.JSON6902, "[{op: remove, path: /spec/a, value: hidden}]"), "operation [0] (remove) must have op, path and nothing else",
		},
		"a custom kind": {
			patch.Patch{Target: patch.Target{Kind: "Widget"}, Type: patch.StrategicMerge, Patch: "spec: {a: b}"},
			"must be of type Merge or JSON6902: Widget is not built into Kubernetes",
		},
		"a custom group": {
			patch.Patch{Target: patch.Target{Kind: "Deployment", Group: ptr.To("example.com")}, Type: patch.StrategicMerge, Patch: "spec: {a: b}"},
			"must be of type Merge or JSON6902",
		},
		"an unknown field": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containerz: []}}}"),
			`must fit Deployment of apps/v1: unknown field "spec.template.spec.containerz"`,
		},
		"another case": {text(patch.StrategicMerge, "spec: {Replicas: 1}"), `unknown field "spec.Replicas"`},
		"another type": {
			text(patch.StrategicMerge, "spec: {replicas: hidden}"), "must fit Deployment of apps/v1: spec.replicas is of another type there",
		},
		"another type in a list": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containers: [{name: a}, {name: b, ports: [{containerPort: hidden}]}]}}}"),
			"spec.template.spec.containers[1].ports[0].containerPort is of another type there",
		},
		"another type of a label": {text(patch.StrategicMerge, "metadata: {labels: {a: yes}}"), "metadata.labels.a is of another type there"},
		"no time": {
			text(patch.StrategicMerge, "spec: {template: {metadata: {creationTimestamp: hidden}}}"),
			"spec.template.metadata.creationTimestamp is of another type there",
		},
		"a list for a map": {text(patch.StrategicMerge, "spec: {template: [hidden]}"), "spec.template is of another type there"},
		"a map for a list": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containers: {a: hidden}}}}"),
			"spec.template.spec.containers is of another type there",
		},
		"an item without key": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containers: [{image: hidden}]}}}"),
			"spec.template.spec.containers[0] must have name, by which it is found",
		},
		"a key that is a map": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containers: [{name: {a: hidden}}]}}}"),
			"spec.template.spec.containers[0] must have name",
		},
		"a null item": {
			text(patch.StrategicMerge, "spec: {template: {spec: {containers: [null]}}}"),
			"spec.template.spec.containers[0] must be neither null nor a list",
		},
		"another directive": {
			text(patch.StrategicMerge, "spec: {$setElementOrder/containers: []}"),
			"spec.$setElementOrder/containers is not taken: the directives are $patch and $retainKeys",
		},
		"an unknown $patch": {
			text(patch.StrategicMerge, "spec: {template: {$patch: merge}}"), "spec.template.$patch must be replace or delete",
		},
		"$retainKeys of nothing": {
			text(patch.StrategicMerge, "spec: {strategy: {$retainKeys: type}}"), "spec.strategy.$retainKeys must be a list of the names of fields",
		},
		"a directive for nothing": {
			text(patch.StrategicMerge, "spec: {template: {spec: {tolerations: [{$patch: replace}]}}}"),
			"spec.template.spec.tolerations[0].$patch is not taken where a field is replaced as a whole",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, errs := patch.Compile([]patch.Patch{text(patch.Merge, "spec: {a: b}"), tt.patch}, field.NewPath("p"))
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), "p[1].") || !strings.Contains(errs[0].Error(), tt.want) {
				t.Fatalf("got %v, want %s", errs, tt.want)
			}
			if strings.Contains(errs[0].Error(), "hidden") || len(errs[0].Error()) > 500 {
				t.Errorf("the error says what is in the patch: %v", errs[0])
			}
		})
	}
	if _, errs := patch.Compile(make([]patch.Patch, 101), field.NewPath("p")); len(errs) != 1 ||
		errs[0].Error() != "p: Too many: 101: must have at most 100 items" {
		t.Errorf("101 patches: %v", errs)
	}
}

func TestPatchesDoNotWorkForHours(t *testing.T) {
	const again = "{op: add, path: /metadata/labels, value: {}}"
	grows := "[{op: add, path: /spec/text, value: " + strings.Repeat("x", 60<<10) + "}" + doubling(5) + "]"
	for kind, patches := range map[string][]patch.Patch{
		"operations": {on("Widget", patch.JSON6902, "["+again+strings.Repeat(", "+again, 9)+"]")},
		"parts":      slices.Repeat([]patch.Patch{on("Widget", patch.Merge, "metadata: {labels: {}}")}, 10),
	} {
		t.Run(kind, func(t *testing.T) {
			all := slices.Concat([]patch.Patch{on("Widget", patch.JSON6902, grows)}, patches)
			_, err := compile(t, all...).Apply(object(t, widget))
			if err == nil || !strings.Contains(err.Error(), "more than 8388608 bytes") {
				t.Errorf("error = %v, want that it is too much", err)
			}
		})
	}
}
