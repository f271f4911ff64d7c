// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package restore_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestUpdated(t *testing.T) {
	for name, test := range map[string]struct{ live, content, want string }{
		"what came since goes, the status and metadata of the server stay": {
			live: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, uid: u, resourceVersion: "7", generation: 3, labels: {a: "2", b: "1"},
			  annotations: {deployment.kubernetes.io/revision: "5", note: x}, ownerReferences: [{uid: o}]},
			  spec: {replicas: 3, paused: true}, status: {replicas: 3}}`,
			content: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {a: "1"}}, spec: {replicas: 1, minReadySeconds: 4}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, uid: u, resourceVersion: "7", generation: 3, labels: {a: "1"},
			  annotations: {deployment.kubernetes.io/revision: "5"}, ownerReferences: [{uid: o}]},
			  spec: {replicas: 1, minReadySeconds: 4}, status: {replicas: 3}}`,
		},
		"the addresses and ports of a Service stay": {
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4],
			  ipFamilyPolicy: SingleStack, type: NodePort, ports: [{name: x, port: 80, protocol: TCP, nodePort: 30001},
			  {name: new, port: 90, protocol: TCP, nodePort: 30003}, {name: y, port: 81, protocol: TCP, nodePort: 30002}]}}`,
			content: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort, ports: [{name: y, port: 82, protocol: TCP},
			  {name: x, port: 80, protocol: TCP}, {name: old, port: 83, protocol: TCP}]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4],
			  ipFamilyPolicy: SingleStack, type: NodePort, ports: [{name: y, port: 82, protocol: TCP, nodePort: 30002},
			  {name: x, port: 80, protocol: TCP, nodePort: 30001}, {name: old, port: 83, protocol: TCP}]}}`,
		},
		"the type of a Service without an address": {
			live:    `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			content: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`,
			want:    `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {ports: [{port: 80}]}}`,
		},
		"finalizers of the cluster and labels of tools stay": {
			live: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [kubernetes.io/x, example.com/new],
			  labels: {argocd.argoproj.io/instance: i, new: x}}, data: {a: b}}`,
			content: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/old]}}`,
			want: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [example.com/old, kubernetes.io/x],
			  labels: {argocd.argoproj.io/instance: i}}}`,
		},
		"the order of kept items is no difference": {
			live:    `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [kubernetes.io/x, example.com/y]}, data: {a: b}}`,
			content: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/y]}, data: {a: c}}`,
			want:    `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [kubernetes.io/x, example.com/y]}, data: {a: c}}`,
		},
		"the default policy of addresses is written if there was another one": {
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, fd00::1],
			  ipFamilies: [IPv4, IPv6], ipFamilyPolicy: PreferDualStack}}`,
			content: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, fd00::1],
			  ipFamilies: [IPv4, IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}`,
		},
		"an external name has no policy of addresses": {
			live: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1],
			  ipFamilies: [IPv4], ipFamilyPolicy: PreferDualStack, type: ClusterIP}}`,
			content: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: a.example.com}}`,
			want: `{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1],
			  ipFamilies: [IPv4], type: ExternalName, externalName: a.example.com}}`,
		},
		"a ClusterRole loses the rules that were aggregated": {
			live: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, uid: u}, aggregationRule: {clusterRoleSelectors: []},
			  rules: [{verbs: ["*"]}, {verbs: [get]}]}`,
			content: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}`,
			want:    `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, uid: u}, rules: [{verbs: [get]}]}`,
		},
		"finalizers of the cluster stay beside the first one of a user": {
			live:    `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [kubernetes.io/x]}}`,
			content: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/y]}}`,
			want:    `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, finalizers: [example.com/y, kubernetes.io/x]}}`,
		},
		"the token of a ServiceAccount stays": {
			live: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, uid: u,
			  annotations: {kubernetes.io/service-account.name: s, kubernetes.io/service-account.uid: x}}, data: {token: dA==, ca.crt: Yw==, more: eA==}}`,
			content: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a,
			  annotations: {kubernetes.io/service-account.name: s}}}`,
			want: `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, uid: u,
			  annotations: {kubernetes.io/service-account.name: s, kubernetes.io/service-account.uid: x}}, data: {token: dA==, ca.crt: Yw==}}`,
		},
		"the finalizers of a Namespace stay": {
			live:    `{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: u, labels: {kubernetes.io/metadata.name: a, b: c}}, spec: {finalizers: [kubernetes]}}`,
			content: `{apiVersion: v1, kind: Namespace, metadata: {name: a}}`,
			want:    `{apiVersion: v1, kind: Namespace, metadata: {name: a, uid: u, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			live, content := parse(t, test.live), parse(t, test.content)
			before := live.DeepCopy()
			got, err := restore.Updated(live, content)
			if err != nil {
				t.Fatal(err)
			}
			if difference := cmp.Diff(parse(t, test.want).Object, got.Object); difference != "" {
				t.Errorf("(-want +got)\n%s", difference)
			}
			again, err := restore.Updated(got, content)
			if err != nil || !cmp.Equal(again.Object, got.Object) || !cmp.Equal(before.Object, live.Object) {
				t.Errorf("%v: the second time (-first +second)\n%s", err, cmp.Diff(got.Object, again.Object))
			}
			is, err := manifest.Canonical(got)
			if err != nil || !cmp.Equal(is.Object, content.Object) {
				t.Errorf("%v: the content (-want +got)\n%s", err, cmp.Diff(content.Object, is.Object))
			}
		})
	}
}

var reasons = restore.Planner{Reasons: []string{"example.com/reason", "example.com/cause"}, Reason: "restored to x"}

// stateOf returns an object in its place.
func stateOf(t *testing.T, live, content string) restore.State {
	t.Helper()
	var s restore.State
	for i, text := range []string{live, content} {
		if text == "" {
			continue
		}
		object := parse(t, text)
		kind := object.GroupVersionKind()
		s.Object = restore.Object{Kind: kind, Resource: schema.GroupVersionResource{Version: kind.Version, Resource: "x"}, Name: object.GetName()}
		if i == 0 {
			s.Live = object
		} else {
			s.Content = object
		}
	}
	return s
}

// TestPlanOrders has creations and updates in the order in which kinds need each other, then deletions in reverse.
func TestPlanOrders(t *testing.T) {
	of := func(version, kind, name string) string {
		return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: " + name + "}}"
	}
	steps, err := reasons.Plan([]restore.State{
		stateOf(t, "", of("example.com/v1", "Widget", "a")), stateOf(t, "", of("apps/v1", "Deployment", "b")),
		stateOf(t, of("v1", "ConfigMap", "gone"), ""), stateOf(t, of("apps/v1", "Deployment", "gone"), ""),
		stateOf(t, "", of("v1", "Secret", "a")), stateOf(t, "", of("apps/v1", "Deployment", "a")),
		stateOf(t, "", of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a")),
		stateOf(t, "", of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a")), stateOf(t, "", of("v1", "Namespace", "a")),
		stateOf(t, "", of("v1", "ServiceAccount", "a")), stateOf(t, of("v1", "ServiceAccount", "gone"), ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, step := range steps {
		got = append(got, string(step.Verb)+" "+step.String())
	}
	want := []string{
		"Create Namespace/a", "Create CustomResourceDefinition/a", "Create ServiceAccount/a", "Create Secret/a", "Create Deployment/a",
		"Create Deployment/b", "Create Widget/a", "Create ValidatingWebhookConfiguration/a",
		"Delete Deployment/gone", "Delete ConfigMap/gone", "Delete ServiceAccount/gone",
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Errorf("(-want +got)\n%s", difference)
	}
}

// TestPlanUnrequested has a value that a user requested, and that the object still has although no client requests it. An update to the same
// value changes nothing; only a new object has it requested.
func TestPlanUnrequested(t *testing.T) {
	const head = "{apiVersion: v1, kind: Service, metadata: {name: a, uid: u}, spec: {clusterIP: None, ipFamilies: [IPv4, IPv6]"
	content := strings.Replace(head, ", uid: u", "", 1)
	for _, test := range []struct {
		live, content string
		recreate      bool
		verb          restore.Verb
		written       []any
	}{
		{head + "}}", content + "}}", false, restore.Keep, nil},
		{head + "}}", content + "}}", true, restore.Recreate, []any{"IPv4", "IPv6"}},
		{head + ", type: ClusterIP}}", content + "}}", false, restore.Update, []any{"IPv4", "IPv6"}},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", true, restore.Keep, nil},
	} {
		state := stateOf(t, test.live, test.content)
		state.Recreate = test.recreate
		steps, err := reasons.Plan([]restore.State{state})
		if err != nil || steps[0].Verb != test.verb {
			t.Fatalf("%s, recreate %t: %v, %v", test.live, test.recreate, steps[0].Verb, err)
		}
		var written []any
		if steps[0].Write != nil {
			written, _, _ = unstructured.NestedSlice(steps[0].Write.Object, "spec", "ipFamilies")
		}
		if difference := cmp.Diff(test.written, written); difference != "" {
			t.Errorf("%s, recreate %t: (-want +got)\n%s", test.live, test.recreate, difference)
		}
	}
}

// TestPlanReasons sets the reason on what is written only, and so that each write changes it.
func TestPlanReasons(t *testing.T) {
	const head = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "
	for name, test := range map[string]struct {
		live, content string
		verb          restore.Verb
		want          map[string]string
	}{
		"create":    {"", head + "annotations: {a: b}}}", restore.Create, map[string]string{"a": "b", "example.com/reason": "restored to x"}},
		"unchanged": {head + "uid: u, annotations: {example.com/reason: first, example.com/cause: z}}}", head + "}}", restore.Keep, nil},
		"update": {
			head + "uid: u, annotations: {example.com/reason: first, example.com/cause: z, a: b}}}", head + "}}", restore.Update,
			map[string]string{"example.com/reason": "restored to x", "example.com/cause": "z"},
		},
		"again": {
			head + "uid: u, annotations: {example.com/reason: restored to x, a: b}}}", head + "}}", restore.Update,
			map[string]string{"example.com/reason": "restored to x again"},
		},
		"delete": {head + "uid: u}}", "", restore.Delete, nil},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := reasons.Plan([]restore.State{stateOf(t, test.live, test.content)})
			if err != nil || steps[0].Verb != test.verb {
				t.Fatalf("%v, %v", steps[0].Verb, err)
			}
			var got map[string]string
			if steps[0].Write != nil {
				got = steps[0].Write.GetAnnotations()
			}
			if difference := cmp.Diff(test.want, got); difference != "" {
				t.Errorf("(-want +got)\n%s", difference)
			}
		})
	}
}
