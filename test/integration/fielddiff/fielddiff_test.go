// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fielddiff_test compares objects of a real kube-apiserver: with its defaults, its managedFields and its schemas.
package fielddiff_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	kubediff "github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// patience is longer than any wait of these tests on a busy machine.
const patience = 2 * time.Minute

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, side]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, side: {type: string, default: left}, count: {type: integer}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// objects are applied, and then changed by another field manager that applies a part of them.
var objects = map[string]struct {
	resource     schema.GroupVersionResource
	base, change string
	want         []string
}{
	"Deployment": {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", env: [{name: LEVEL, value: info}], ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}],
         resources: {limits: {cpu: 1000m}}}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, finalizers: [example.com/hold], labels: {tier: front}}
spec:
  template:
    spec:
      containers:
      - {name: web, image: "web:2", env: [{name: "LEVEL", value: debug}, {name: MODE, value: live}],
         ports: [{containerPort: 53, protocol: TCP, name: dns}], resources: {limits: {cpu: "2"}}}
`, []string{
		"Added /metadata/finalizers[=example.com/hold]",
		"Added /metadata/labels/tier",
		"Changed /spec/template/spec/containers[name=web]/env[name=LEVEL]/value",
		"Added /spec/template/spec/containers[name=web]/env[name=MODE]/name",
		"Added /spec/template/spec/containers[name=web]/env[name=MODE]/value",
		"Changed /spec/template/spec/containers[name=web]/image",
		"Added /spec/template/spec/containers[name=web]/ports[containerPort=53,protocol=TCP]/name",
		"Changed /spec/template/spec/containers[name=web]/resources/limits/cpu",
	}},
	"StatefulSet": {schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {
    containers: [{name: db, image: "db:1", volumeMounts: [{name: data, mountPath: "/var/lib"}]}], volumes: [{name: data, emptyDir: {}}]}}
`, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {template: {spec: {containers: [{name: db, volumeMounts: [{name: data, mountPath: "/var/lib", readOnly: true}]}],
  volumes: [{name: more, emptyDir: {}}]}}}
`, []string{
		"Added /spec/template/spec/containers[name=db]/volumeMounts[mountPath=/var/lib]/readOnly",
		"Added /spec/template/spec/volumes[name=more]/emptyDir",
		"Added /spec/template/spec/volumes[name=more]/name",
	}},
	"CronJob": {schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {schedule: "0 3 * * *", suspend: true,
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: "job:1"}]}}}}}
`, `
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {schedule: "0 4 * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: job, args: [again]}]}}}}}
`, []string{"Added /spec/jobTemplate/spec/template/spec/containers[name=job]/args", "Changed /spec/schedule"}},
	"HorizontalPodAutoscaler": {schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}, `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
`, `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 5}
`, []string{"Changed /spec/maxReplicas"}},
	"Ingress": {schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: b.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
`, []string{"Changed /spec/rules"}},
	"Widget": {schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {parts: [{name: a, count: 1}, {name: b}], tags: [x], free: {list: [1], deep: {field: 1}}}
`, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {parts: [{name: a, side: left, count: 2}, {name: a, side: right}], tags: [z], free: {list: [2], deep: {field: 2}}}
`, []string{
		"Changed /spec/free/deep/field", "Changed /spec/free/list", "Changed /spec/parts[name=a,side=left]/count",
		"Added /spec/parts[name=a,side=right]/name", "Added /spec/parts[name=a,side=right]/side", "Added /spec/tags[=z]",
	}},
}

func TestCompareObjectsOfACluster(t *testing.T) {
	config, err := clustertest.Start(t, devcluster.Options{}).Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	schemas, clock := schemasOf(t, config)
	// The first comparison is made before the cluster has the type of widgets.
	unknown := object(t, objects["Widget"].base)
	if found, err := schemas.Compare(t.Context(), unknown, unknown.DeepCopy()); err != nil || len(found) > 0 {
		t.Fatalf("got %v %v", found, err)
	}
	define(t, client)
	for name, tt := range objects {
		t.Run(name, func(t *testing.T) {
			before := apply(t, client.Resource(tt.resource).Namespace("default"), tt.base, "base")
			after := apply(t, client.Resource(tt.resource).Namespace("default"), tt.change, "changer")
			var differences []kubediff.Difference
			// A definition is in the OpenAPI documents some time after it is served.
			eventually(t, "the differences by the cluster's schema", func(ctx context.Context) (bool, error) {
				clock.SetTime(clock.Now().Add(time.Minute))
				var err error
				differences, err = schemas.Compare(ctx, before, after)
				return name != "Widget" || len(differences) == len(tt.want), err
			})
			if diff := cmp.Diff(tt.want, lines(differences)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, d := range differences {
				if !slices.Contains(d.After, "changer") || d.Change == kubediff.Changed && !slices.Contains(d.Before, "base") {
					t.Errorf("managers of %s: before %v, after %v", d.Path, d.Before, d.After)
				}
			}
		})
	}
}

func lines(differences []kubediff.Difference) []string {
	out := []string{}
	for _, d := range differences {
		out = append(out, string(d.Change)+" "+d.Path.String())
	}
	return out
}

func schemasOf(t *testing.T, config *rest.Config) (*kubediff.Schemas, *clocktesting.FakePassiveClock) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakePassiveClock(time.Now())
	return kubediff.NewSchemas(openapi.ToClientWithContext(client.OpenAPIV3()), clock), clock
}

func define(t *testing.T, client dynamic.Interface) {
	t.Helper()
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	apply(t, definitions, widgets, "base")
	eventually(t, "the definition", func(ctx context.Context) (bool, error) {
		definition, err := definitions.Get(ctx, "widgets.example.com", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		found, _, err := unstructured.NestedFieldNoCopy(definition.Object, "status", "conditions")
		conditions, _ := found.([]any)
		return slices.ContainsFunc(conditions, func(condition any) bool {
			fields := condition.(map[string]any)
			return fields["type"] == "Established" && fields["status"] == "True"
		}), err
	})
	eventually(t, "the widgets", func(ctx context.Context) (bool, error) {
		_, err := client.Resource(objects["Widget"].resource).Namespace("default").List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// apply applies an object and returns it without the fields that controllers change.
func apply(t *testing.T, client dynamic.ResourceInterface, text, manager string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, text)
	applied, err := client.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		t.Fatalf("apply by %s of %s: %v", manager, o.GetKind(), err)
	}
	unstructured.RemoveNestedField(applied.Object, "status")
	unstructured.RemoveNestedField(applied.Object, "metadata", "annotations")
	return applied
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.TrimSpace(text)), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func eventually(t *testing.T, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, condition); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
