// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	kubediff "github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

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

// offline are the schemas without a cluster.
func offline() *kubediff.Schemas { return kubediff.NewSchemas(nil, clock.RealClock{}) }

// compare returns differences as lines, after it has shown that pkg/kube/ignore reads them and takes the objects for the same
// without what differs.
func compare(t *testing.T, schemas *kubediff.Schemas, before, after *unstructured.Unstructured) []string {
	t.Helper()
	inputs := []*unstructured.Unstructured{before.DeepCopy(), after.DeepCopy()}
	differences, err := schemas.Compare(t.Context(), before, after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inputs, []*unstructured.Unstructured{before, after}); diff != "" {
		t.Fatalf("the objects were changed:\n%s", diff)
	}
	lines := []string{}
	rule := ignore.Rule{}
	for _, d := range differences {
		line := fmt.Sprintf("%s %s", d.Change, d.Path)
		if !d.Whole.Equal(d.Path) {
			line += fmt.Sprintf(" with %s", d.Whole)
		}
		if len(d.Before)+len(d.After) > 0 {
			line += fmt.Sprintf(" %v %v", d.Before, d.After)
		}
		lines = append(lines, line)
		rule.Fields = append(rule.Fields, d.Whole.String())
		if read, err := fieldpath.Parse(d.Path.String()); err != nil || !read.Equal(d.Path) || !d.Path.BeginsWith(d.Whole) {
			t.Errorf("%s is read as %s (%v)", d.Path, read, err)
		}
	}
	rules, err := ignore.Compile([]ignore.Rule{rule})
	if err != nil {
		t.Fatalf("pkg/kube/ignore does not read it: %v", err)
	}
	if left, err := schemas.Compare(t.Context(), rules.Without(before), rules.Without(after)); err != nil || len(left) > 0 {
		t.Errorf("left out what differs, and still does: %v %v", left, err)
	}
	return lines
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  uid: a
  resourceVersion: "1"
  generation: 1
  creationTimestamp: 2024-01-01T00:00:00Z
  finalizers: [example.com/a, example.com/b]
  labels: {app: web}
  annotations: {example.com/a: x}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{key: a}, {key: b}]
      volumes: [{name: v, configMap: {name: c}}]
      containers:
      - name: web
        image: web:1
        command: [a, b]
        env: [{name: LEVEL, value: info}, {name: MODE, value: live}]
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]
        volumeMounts: [{name: v, mountPath: "/a,b"}]
        resources: {limits: {cpu: "1", memory: 1Gi}}
      - name: sidecar
        image: proxy:1
`

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec:
  size: 1
  parts: [{name: a, count: 1}, {name: b, count: 2}]
  tags: [x, v]
  steps: [{name: a}, {name: b}]
  free: {anything: [{name: a}]}
`

func replaced(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		before string
		change func(string) string
		want   []string
	}{
		"what the server keeps": {
			deployment,
			replaced("uid: a", "uid: b", `"1"`, `"2"`, "generation: 1", "generation: 2", "2024-01", "2025-01", "name: web\n  namespace: shop",
				"name: web2\n  namespace: dev", `cpu: "2"`, `cpu: "1"`),
			[]string{"Changed /spec/template/spec/containers[name=web]/resources/limits/cpu"},
		},
		"a field":  {deployment, replaced("replicas: 3", "replicas: 4"), []string{"Changed /spec/replicas"}},
		"an image": {deployment, replaced("web:1", "web:2"), []string{"Changed /spec/template/spec/containers[name=web]/image"}},
		"env, in another order": {
			deployment,
			replaced("[{name: LEVEL, value: info}, {name: MODE, value: live}]", "[{name: MODE, value: live}, {name: LEVEL, value: debug}]"),
			[]string{"Changed /spec/template/spec/containers[name=web]/env[name=LEVEL]/value"},
		},
		"ports by their keys": {deployment, replaced("{containerPort: 80, protocol: UDP}", "{containerPort: 80, protocol: UDP, name: dns}"),
			[]string{"Added /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=UDP]/name"}},
		"a port goes": {deployment, replaced(", {containerPort: 80, protocol: UDP}", ""), []string{
			"Removed /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=UDP]/containerPort with " +
				"/spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=UDP]",
			"Removed /spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=UDP]/protocol with " +
				"/spec/template/spec/containers[name=web]/ports[containerPort=80,protocol=UDP]"}},
		"a container comes": {deployment, func(s string) string { return s + "      - name: new\n        image: new:1\n" }, []string{
			"Added /spec/template/spec/containers[name=new]/image with /spec/template/spec/containers[name=new]",
			"Added /spec/template/spec/containers[name=new]/name with /spec/template/spec/containers[name=new]"}},
		"a map goes": {deployment, replaced("type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}", "type: Recreate"), []string{
			"Removed /spec/strategy/rollingUpdate/maxSurge with /spec/strategy/rollingUpdate",
			"Removed /spec/strategy/rollingUpdate/maxUnavailable with /spec/strategy/rollingUpdate",
			"Changed /spec/strategy/type"}},
		"an annotation with a slash": {
			deployment, replaced("example.com/a: x", "example.com/a: x, b: z"), []string{"Added /metadata/annotations/b"},
		},
		"the only annotations": {
			deployment, replaced("  annotations: {example.com/a: x}\n", ""),
			[]string{"Removed /metadata/annotations/example.com~1a with /metadata/annotations"},
		},
		"a set": {
			deployment, replaced("[example.com/a, example.com/b]", "[example.com/b, example.com/c]"),
			[]string{"Removed /metadata/finalizers[=example.com/a]", "Added /metadata/finalizers[=example.com/c]"},
		},
		"a list without keys": {
			deployment, replaced("[{key: a}, {key: b}]", "[{key: b}, {key: a}]"), []string{"Changed /spec/template/spec/tolerations"},
		},
		"a list of values": {
			deployment, replaced("[a, b]", "[a]"), []string{"Changed /spec/template/spec/containers[name=web]/command"},
		},
		"a struct that is one field": {
			deployment, replaced("matchLabels: {app: web}", "matchLabels: {app: api}"), []string{"Changed /spec/selector"},
		},
		"a key to quote": {
			deployment, replaced(`mountPath: "/a,b"`, `mountPath: "/a,b", readOnly: true`),
			[]string{`Added /spec/template/spec/containers[name=web]/volumeMounts[mountPath="/a,b"]/readOnly`},
		},
		"a quantity by its text": {
			deployment, replaced(`cpu: "1"`, "cpu: 1000m"), []string{"Changed /spec/template/spec/containers[name=web]/resources/limits/cpu"},
		},
		"a default that is written": {
			deployment, replaced("image: proxy:1", "image: proxy:1\n        imagePullPolicy: IfNotPresent"),
			[]string{"Added /spec/template/spec/containers[name=sidecar]/imagePullPolicy"},
		},
		"an empty map": {
			deployment, replaced("image: proxy:1", "image: proxy:1\n        resources: {}"),
			[]string{"Added /spec/template/spec/containers[name=sidecar]/resources"},
		},
		"a StatefulSet": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db,
  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}],
  template: {spec: {containers: [{name: db, image: "db:1"}]}}}}`, replaced("1Gi", "2Gi", "db:1", "db:2"),
			[]string{"Changed /spec/template/spec/containers[name=db]/image", "Changed /spec/volumeClaimTemplates"}},
		"a CronJob": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: "* * * * *", suspend: false, ` +
				`jobTemplate: {spec: {template: {spec: {initContainers: [{name: a, env: [{name: X, valueFrom: {secretKeyRef: {name: s, ` +
				`key: k}}}]}]}}}}}}`,
			replaced("suspend: false", "suspend: true", "key: k", "key: l"),
			[]string{
				"Changed /spec/jobTemplate/spec/template/spec/initContainers[name=a]/env[name=X]/valueFrom/secretKeyRef", "Changed /spec/suspend",
			},
		},
		"a HorizontalPodAutoscaler": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h}, spec: {maxReplicas: 3, ` +
				`metrics: [{type: Resource}], scaleTargetRef: {kind: Deployment, name: web}}}`,
			replaced("maxReplicas: 3", "maxReplicas: 5", "type: Resource", "type: Pods"),
			[]string{"Changed /spec/maxReplicas", "Changed /spec/metrics"},
		},
		"an Ingress": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {tls: [{hosts: [a]}], rules: [{host: a, ` +
				`http: {paths: [{path: /}]}}]}}`,
			replaced("host: a", "host: b"), []string{"Changed /spec/rules"},
		},
		"a Service": {
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {selector: {a: b}, ports: [{port: 80, protocol: TCP, targetPort: http}, ` +
				`{port: 53, protocol: UDP}]}}`,
			replaced("targetPort: http", "targetPort: 8080"), []string{"Changed /spec/ports[port=80,protocol=TCP]/targetPort"},
		},
		"a Secret": {
			`{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: aGlkZGVu, b: aGlkZGVu}}`,
			replaced("b: aGlkZGVu", "c: aGlkZGVu"), []string{"Removed /data/b", "Added /data/c"},
		},
		"two items of one key": {deployment, replaced("{name: MODE, value: live}", "{name: LEVEL, value: live}"), []string{
			"Added /spec/template/spec/containers[name=web]/env[name=LEVEL]",
			"Removed /spec/template/spec/containers[name=web]/env[name=LEVEL]/name with /spec/template/spec/containers[name=web]/env[name=LEVEL]",
			"Removed /spec/template/spec/containers[name=web]/env[name=LEVEL]/value with /spec/template/spec/containers[name=web]/env[name=LEVEL]",
			"Removed /spec/template/spec/containers[name=web]/env[name=MODE]/name with /spec/template/spec/containers[name=web]/env[name=MODE]",
			"Removed /spec/template/spec/containers[name=web]/env[name=MODE]/value with /spec/template/spec/containers[name=web]/env[name=MODE]"}},
		"a type without a schema": {
			widget, replaced("count: 1", "count: 3", "size: 1", "size: 2"), []string{"Changed /spec/parts", "Changed /spec/size"},
		},
		"a number by what it is": {widget, replaced("size: 1", "size: 1.0"), nil},
	}
	schemas := offline()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := object(t, tt.before), object(t, tt.change(tt.before))
			if diff := cmp.Diff(append([]string{}, tt.want...), compare(t, schemas, before, after)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if same := compare(t, schemas, before, before.DeepCopy()); len(same) > 0 {
				t.Errorf("differs from itself: %q", same)
			}
		})
	}
}

func TestCompareReportsManagers(t *testing.T) {
	before, after := object(t, deployment),
		object(t, strings.NewReplacer("web:1", "web:2", "replicas: 3", "replicas: 4", "x}", "w}").Replace(deployment))
	managed := func(o *unstructured.Unstructured, entries string) {
		o.Object["metadata"].(map[string]any)["managedFields"] = object(t, entries).Object["entries"]
	}
	managed(before, `
entries:
- {manager: kubectl, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {
    f:replicas: {}, f:template: {f:spec: {f:containers: {'k:{"name":"web"}': {".": {}, f:name: {}, f:image: {}}}}}}}}
- {manager: broken, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {"no": "set"}}
- {manager: empty, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1}
`)
	managed(after, `
entries:
- {manager: scaler, operation: Update, subresource: scale, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:replicas: {}}}}
- {manager: scaler, operation: Update, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:replicas: {}}}}
- {manager: kubectl, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {
    f:replicas: {}, f:template: {f:spec: {f:containers: {'k:{"name":"web"}': {f:image: {}}, 'k:{"name":"api"}': {f:image: {}}}}}}}}
- {manager: other, operation: Apply, apiVersion: apps/v1, fieldsType: FieldsV1, fieldsV1: {f:spec: {
    f:replicasx: {}, f:template: {f:spec: {f:containers: {'k:{"name":"web"}': {".": {}}, 'k:{"name":"sidecar"}': {f:image: {}}}}}}}}
`)
	want := []string{
		"Changed /metadata/annotations/example.com~1a",
		"Changed /spec/replicas [kubectl] [kubectl scaler]",
		"Changed /spec/template/spec/containers[name=web]/image [kubectl] [kubectl]",
	}
	if diff := cmp.Diff(want, compare(t, offline(), before, after)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCompareRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, want string }{
		"other kinds":    {deployment, strings.Replace(deployment, "kind: Deployment", "kind: StatefulSet", 1), "they are of different types"},
		"other versions": {deployment, strings.Replace(deployment, "apps/v1", "apps/v1beta1", 1), "they are of different types"},
	} {
		if _, err := offline().Compare(t.Context(), object(t, tt.before), object(t, tt.after)); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
