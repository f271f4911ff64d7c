// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy_test

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

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

func copyOf(t *testing.T, target objectcopy.Target, source *unstructured.Unstructured) (*unstructured.Unstructured, string) {
	t.Helper()
	copied, omitted, err := target.Copy(source)
	if err != nil || (copied == nil) != (omitted != "") {
		t.Fatalf("%v %q %v", copied, omitted, err)
	}
	return copied, omitted
}

func TestMarksStayWhereSelectorsUseThem(t *testing.T) {
	marks, err := objectcopy.ParseMarks("owner", "managed-by=tool", "tool.example.com/*")
	if err != nil {
		t.Fatal(err)
	}
	const labels = "owner: a, managed-by: tool, tool.example.com/x: b, app: web"
	service := func(selector string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: s, labels: {" + labels +
			", kustomize.toolkit.fluxcd.io/name: f}}, spec: {selector: {" + selector + "}}}"
	}
	tests := map[string]struct {
		source   string
		selected string
		want     []string
	}{
		"none is used":                  {service("app: web"), "", []string{"app"}},
		"one is used by the object":     {service("app: web, owner: a"), "", []string{"app", "owner"}},
		"one is used by another object": {service("app: web"), "tool.example.com/x", []string{"app", "tool.example.com/x"}},
		"one that the canonical form has": {
			service("app: web"), "kustomize.toolkit.fluxcd.io/name", []string{"app", "kustomize.toolkit.fluxcd.io/name"},
		},
		"a value that is no mark": {strings.Replace(service("app: web"), "managed-by: tool", "managed-by: hand", 1), "",
			[]string{"app", "managed-by"}},
		"a selector of expressions": {
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: p, labels: {" + labels +
				"}}, spec: {selector: {matchExpressions: [{key: owner, operator: Exists}]}}}",
			"", []string{"app", "owner"},
		},
		"keys to spread pods by": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, labels: {" + labels +
				"}}, spec: {template: {spec: {topologySpreadConstraints: [{matchLabelKeys: [managed-by]}]}}}}",
			"", []string{"app", "managed-by"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			target := objectcopy.Target{Namespace: "dev", Marks: marks, Selected: sets.New(test.selected)}
			copied, _ := copyOf(t, target, object(t, test.source))
			if got := slices.Sorted(maps.Keys(copied.GetLabels())); !slices.Equal(got, test.want) {
				t.Errorf("labels %v, want %v", got, test.want)
			}
		})
	}
}

func TestMarksAreRead(t *testing.T) {
	for _, text := range []string{"", "*", "a b", "/x", "example.com/", "/*", "example.com/a*", "example.com/*=x", "=x", "example.com/*/b"} {
		if _, err := objectcopy.ParseMarks("fine", text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("mark %q", text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := objectcopy.ParseMarks("a", "example.com/a", "example.com/a=", "a=b c", "example.com/*"); err != nil {
		t.Error(err)
	}
}

func TestIngressesHaveHostsOfTheirOwn(t *testing.T) {
	ingress := func(spec string) string {
		return "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: shop}, spec: {" + spec + "}}"
	}
	const backend = "defaultBackend: {service: {name: w, port: {number: 80}}}"
	byHost := func(_ *unstructured.Unstructured, host string) string {
		if host == "" || host == "gone" {
			return ""
		}
		return strings.TrimSuffix(host, ".dev") + ".dev"
	}
	tests := map[string]struct {
		spec string
		host func(of *unstructured.Unstructured, host string) string
		want string
	}{
		"by template": {"rules: [{host: a}, {host: b}]", byHost, "rules: [{host: a.dev}, {host: b.dev}]"},
		"some are left out": {
			"rules: [{host: gone}, {host: b}], tls: [{hosts: [gone]}, {hosts: [gone, b]}]",
			byHost, "rules: [{host: b.dev}], tls: [{hosts: [b.dev]}]",
		},
		"a certificate for all": {
			"rules: [{host: b}], tls: [{secretName: s}]", byHost, "rules: [{host: b.dev}], tls: [{secretName: s}]",
		},
		"every host is left out":           {"rules: [{host: gone}]", byHost, ""},
		"a rule for all hosts is left out": {"rules: [{http: {}}]", byHost, ""},
		"a rule for all hosts gets its own": {
			"rules: [{http: {}}]", func(ingress *unstructured.Unstructured, _ string) string { return ingress.GetName() + ".dev" },
			"rules: [{host: i.dev, http: {}}]",
		},
		"the backend for all is left out": {backend + ", rules: [{host: a}]", byHost, "rules: [{host: a.dev}]"},
		"nothing but a backend for all":   {backend, byHost, ""},
		"as the source": {
			backend + ", rules: [{http: {}}, {host: a}], tls: [{hosts: [a]}]", nil,
			backend + ", rules: [{http: {}}, {host: a}], tls: [{hosts: [a]}]",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			copied, omitted := copyOf(t, objectcopy.Target{Namespace: "dev", Host: test.host}, object(t, ingress(test.spec)))
			if test.want == "" {
				if omitted != "no host of its own" {
					t.Errorf("%v %q", copied, omitted)
				}
				return
			}
			want := object(t, strings.Replace(ingress(test.want), "namespace: shop", "namespace: dev", 1))
			if diff := cmp.Diff(want, copied); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestGatewaysAndRoutesHaveHostsOfTheirOwn(t *testing.T) {
	const source = "{apiVersion: gateway.networking.k8s.io/v1, kind: %s, metadata: {name: x, namespace: %s}, spec: {%s}}"
	byHost := func(_ *unstructured.Unstructured, host string) string {
		if host == "gone" {
			return ""
		}
		return host[:1] + ".dev"
	}
	tests := map[string]struct {
		kind, spec string
		want       string
	}{
		"a listener for all hosts stays": {
			"Gateway", "listeners: [{name: a}, {name: b, hostname: b}]", "listeners: [{name: a}, {name: b, hostname: b.dev}]",
		},
		"a listener without a host is left out": {
			"Gateway", "listeners: [{name: a, hostname: gone}, {name: b, hostname: b}]", "listeners: [{name: b, hostname: b.dev}]",
		},
		"listeners that would be the same": {
			"Gateway", "listeners: [{name: a, port: 1, hostname: b1}, {name: b, port: 1, hostname: b2}, {name: c, port: 2, hostname: b2}]",
			"listeners: [{name: a, port: 1, hostname: b.dev}, {name: c, port: 2, hostname: b.dev}]",
		},
		"a Gateway of the default scope": {
			"Gateway", "defaultScope: All, addresses: [{value: a}], listeners: [{name: a}]", "listeners: [{name: a}]",
		},
		"a route of the default Gateways": {"GRPCRoute", "useDefaultGateways: All, hostnames: [a]", "hostnames: [a.dev]"},
		"a mesh route of the default Gateways": {
			"HTTPRoute", "useDefaultGateways: All, parentRefs: [{group: '', kind: Service, name: s}]",
			"parentRefs: [{group: '', kind: Service, name: s}]",
		},
		"every listener is left out":  {"Gateway", "listeners: [{name: a, hostname: gone}]", ""},
		"hosts of a route":            {"HTTPRoute", "hostnames: [a, b]", "hostnames: [a.dev, b.dev]"},
		"hosts that are the same now": {"GRPCRoute", "hostnames: [a1, a2, gone]", "hostnames: [a.dev]"},
		"every host is left out":      {"GRPCRoute", "hostnames: [gone], parentRefs: [{name: near}]", ""},
		"all hosts of a Gateway":      {"HTTPRoute", "parentRefs: [{name: near}]", ""},
		"all hosts of whatever":       {"HTTPRoute", "rules: []", ""},
		"a route of a mesh": {
			"GRPCRoute", "parentRefs: [{group: '', kind: Service, name: s}, {group: '', kind: Service, name: s, namespace: shop}]",
			"parentRefs: [{group: '', kind: Service, name: s}, {group: '', kind: Service, name: s, namespace: dev}]",
		},
		"a route of a mesh and a Gateway": {"GRPCRoute", "parentRefs: [{group: '', kind: Service, name: s}, {name: near}]", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			copied, omitted := copyOf(t, objectcopy.Target{Namespace: "dev", Host: byHost},
				object(t, fmt.Sprintf(source, test.kind, "shop", test.spec)))
			if test.want == "" {
				if omitted != "no host of its own" {
					t.Errorf("%v %q", copied, omitted)
				}
				return
			}
			if diff := cmp.Diff(object(t, fmt.Sprintf(source, test.kind, "dev", test.want)), copied); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func TestTheDefaultAccountIsCopiedForItsPullSecrets(t *testing.T) {
	const account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}, imagePullSecrets: [{name: registry}]}"
	for left, want := range map[string]string{"": "", "registry": "made in every namespace"} {
		copied, omitted := copyOf(t, objectcopy.Target{Namespace: "dev", OmittedSecrets: sets.New(left)}, object(t, account))
		if omitted != want {
			t.Errorf("without %q: %v %q, want %q", left, copied, omitted, want)
		}
	}
}

func TestOneReplica(t *testing.T) {
	tests := map[string]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3}}":                        "{replicas: 1}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {replicas: 0}}":                       "{replicas: 0}",
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {paused: true}}":                       "{paused: true}",
		"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 9}}": "{maxReplicas: 1}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {maxUnavailable: 0}}":       "{maxUnavailable: 1}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1}}":         "{maxUnavailable: 1}",
	}
	for source, want := range tests {
		copied, _ := copyOf(t, objectcopy.Target{Namespace: "dev", OneReplica: true}, object(t, source))
		if diff := cmp.Diff(object(t, want).Object, copied.Object["spec"]); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", source, diff)
		}
	}
	patched := object(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}")
	patched.Object["spec"] = map[string]any{"replicas": 3.0}
	if copied, _ := copyOf(t, objectcopy.Target{OneReplica: true},
		patched); !cmp.Equal(copied.Object["spec"], map[string]any{"replicas": 1.0}) {
		t.Errorf("three replicas became %v", copied.Object["spec"])
	}
}

func TestObjectsWithoutASpec(t *testing.T) {
	target := preview(nil)
	for _, kind := range []string{
		"apps/v1 Deployment", "apps/v1 DaemonSet", "batch/v1 CronJob", "batch/v1 Job", "policy/v1 PodDisruptionBudget", "v1 Service", "v1 Secret",
		"autoscaling/v2 HorizontalPodAutoscaler",
	} {
		version, kind, _ := strings.Cut(kind, " ")
		copied, _ := copyOf(t, target, object(t, "{apiVersion: "+version+", kind: "+kind+", metadata: {name: a}, status: {x: 1}}"))
		if copied.GetNamespace() != "shop-preview" || len(copied.Object) != 3 {
			t.Errorf("%v", copied.Object)
		}
	}
	if _, _, err := target.Copy(object(t, "{kind: Service, metadata: {name: a}}")); err == nil {
		t.Error("an object without apiVersion was copied")
	}
}

// TestRandom copies objects with random labels and selectors, and objects of production, once and again.
func TestRandom(t *testing.T) {
	source := rand.New(rand.NewSource(1))
	objects := production(t)
	for range 200 {
		found := map[string]*unstructured.Unstructured{}
		for _, file := range slices.Sorted(maps.Keys(objects)) {
			found[file] = objects[file].DeepCopy()
			scramble(source, found[file])
		}
		target := preview(found)
		if source.Intn(2) == 0 {
			target = twin(found)
		}
		for file, o := range found {
			copied, _ := copyOf(t, target, o)
			if copied == nil {
				continue
			}
			checkSelectedStay(t, file, target.Selected, o, copied)
			again, _ := copyOf(t, target, copied)
			if diff := cmp.Diff(copied, again); diff != "" {
				t.Fatalf("%s: a copy of the copy differs:\n%s", file, diff)
			}
		}
	}
}

// scramble gives an object labels of which some are marks, and to its selector some of them.
func scramble(source *rand.Rand, o *unstructured.Unstructured) {
	keys := []string{
		"app", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "argocd.argoproj.io/instance", "kustomize.toolkit.fluxcd.io/name",
		"helm.toolkit.fluxcd.io/name", "objectset.rio.cattle.io/hash", "kapp.k14s.io/app", "example.com/x",
	}
	source.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	labels, selector := map[string]string{}, map[string]any{}
	for _, key := range keys[:source.Intn(len(keys))] {
		labels[key] = []string{"Helm", "x"}[source.Intn(2)]
		if source.Intn(8) == 0 {
			selector[key] = labels[key]
		}
	}
	o.SetLabels(labels)
	o.SetAnnotations(labels)
	spec, _ := o.Object["spec"].(map[string]any)
	switch o.GetKind() {
	case "Service":
		spec["selector"] = selector
	case "Deployment", "StatefulSet", "DaemonSet", "PodDisruptionBudget":
		spec["selector"] = map[string]any{"matchLabels": selector}
	}
}

// checkSelectedStay expects the labels that selectors use where they were, and selectors and pods as they were.
func checkSelectedStay(t *testing.T, file string, selected sets.Set[string], source, copied *unstructured.Unstructured) {
	t.Helper()
	for key, value := range source.GetLabels() {
		if selected.Has(key) && copied.GetLabels()[key] != value {
			t.Fatalf("%s: label %s is %q, want %q", file, key, copied.GetLabels()[key], value)
		}
	}
	if source.GetKind() == "Job" {
		return // The cluster made its selector, and makes another.
	}
	for _, path := range [][]string{{"spec", "selector"}, {"spec", "template", "metadata", "labels"}} {
		was, _, _ := unstructured.NestedMap(source.Object, path...)
		is, _, _ := unstructured.NestedMap(copied.Object, path...)
		if diff := cmp.Diff(was, is); diff != "" {
			t.Fatalf("%s: %v:\n%s", file, path, diff)
		}
	}
}
