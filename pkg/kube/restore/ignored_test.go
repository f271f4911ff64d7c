// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

// scaled is a Deployment with fields of other managers: replicas, an annotation, and a container.
const scaled = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  uid: u
  annotations: {example.com/hash: x, deployment.kubernetes.io/revision: "1"}
  managedFields:
  - manager: scaler
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:replicas": {}}}
  - manager: injector
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata: {f:annotations: {".": {}, f:example.com/hash: {}}}
      f:spec: {f:template: {f:spec: {f:containers: {'k:{"name":"sidecar"}': {".": {}, f:name: {}, f:image: {}}}}}}
spec:
  replicas: 5
  template: {spec: {containers: [{name: sidecar, image: "proxy:1"}, {name: web, image: "web:2"}]}}
status: {replicas: 5}
`

func TestWithIgnored(t *testing.T) {
	const head = "{apiVersion: apps/v1, kind: Deployment, "
	for name, test := range map[string]struct {
		rule          ignore.Rule
		content, want string
	}{
		"a field": {
			ignore.Rule{Fields: []string{"/spec/replicas"}},
			head + "metadata: {name: web}, spec: {paused: true}}", head + "metadata: {name: web}, spec: {paused: true, replicas: 5}}",
		},
		"a field that was mirrored": {
			ignore.Rule{Fields: []string{"/spec/replicas", "/spec/paused"}},
			head + "metadata: {name: web}, spec: {paused: true, replicas: 1}}", head + "metadata: {name: web}, spec: {replicas: 5}}",
		},
		"of another object": {
			ignore.Rule{Name: "api", Fields: []string{"/spec/replicas"}},
			head + "metadata: {name: web}, spec: {}}", head + "metadata: {name: web}, spec: {}}",
		},
		"fields of managers": {
			ignore.Rule{Managers: []string{"scaler", "injector"}},
			head + "metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: 'web:1'}]}}}}",
			head + `metadata: {name: web, annotations: {example.com/hash: x}}, spec: {replicas: 5, template: {spec: {containers: [
			  {name: sidecar, image: "proxy:1"}, {name: web, image: "web:1"}]}}}}`,
		},
		"beside other annotations": {
			ignore.Rule{Managers: []string{"injector"}, Fields: []string{"/metadata/annotations"}},
			head + "metadata: {name: web, annotations: {a: b}}, spec: {}}",
			head + "metadata: {name: web, annotations: {a: b, example.com/hash: x}}, spec: {}}",
		},
		"of an item that is not there": {
			ignore.Rule{Fields: []string{"/spec/template/spec/containers[name=web]/image"}},
			head + "metadata: {name: web}, spec: {template: {spec: {containers: [{name: api, image: 'api:1'}]}}}}",
			head + "metadata: {name: web}, spec: {template: {spec: {containers: [{name: api, image: 'api:1'}]}}}}",
		},
		"an item by its index": {
			ignore.Rule{Fields: []string{"/spec/template/spec/containers/0"}},
			head + "metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, image: 'web:1'}]}}}}",
			head + "metadata: {name: web}, spec: {template: {spec: {containers: [{name: sidecar, image: 'proxy:1'}, {name: web, image: 'web:1'}]}}}}",
		},
		"the status": {
			ignore.Rule{Fields: []string{"/status/replicas"}}, head + "metadata: {name: web}, spec: {}}", head + "metadata: {name: web}, spec: {}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := ignore.Compile([]ignore.Rule{test.rule})
			if err != nil {
				t.Fatal(err)
			}
			live, content := parse(t, scaled), parse(t, test.content)
			got, err := restore.WithIgnored(rules, live, content)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(parse(t, test.want).Object, got.Object); difference != "" {
				t.Errorf("(-want +got)\n%s", difference)
			}
			if !cmp.Equal(parse(t, scaled).Object, live.Object) || !cmp.Equal(parse(t, test.content).Object, content.Object) {
				t.Error("an argument was changed")
			}
			if again, err := restore.WithIgnored(rules, live, got); err != nil || !cmp.Equal(got.Object, again.Object) {
				t.Errorf("the second time: %v\n%s", err, cmp.Diff(got.Object, again.Object))
			}
		})
	}
}

// TestPlanKeepsIgnored keeps ignored fields, and plans nothing if no other field differs.
func TestPlanKeepsIgnored(t *testing.T) {
	rules, err := ignore.Compile([]ignore.Rule{{Fields: []string{"/data/b"}}})
	if err != nil {
		t.Fatal(err)
	}
	const head = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a"
	for content, verb := range map[string]restore.Verb{"{a: x}": restore.Keep, "{a: y}": restore.Update} {
		s := stateOf(t, head+", uid: u}, data: {a: x, b: z}}", head+"}, data: "+content+"}")
		s.Ignored = rules
		steps, err := reasons.Plan([]restore.State{s})
		if err != nil || steps[0].Verb != verb {
			t.Fatalf("%s: %v, %v", content, steps[0].Verb, err)
		}
		if verb == restore.Update && steps[0].Write.Object["data"].(map[string]any)["b"] != "z" {
			t.Errorf("%v", steps[0].Write.Object)
		}
	}
}
