// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
)

type fields = map[string]any

func render(t *testing.T, object fields) string {
	t.Helper()
	content, err := Render(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	checkRender(t, object)
	return string(content)
}

func TestFinalizersOfUsersAreKept(t *testing.T) {
	tests := map[string]bool{
		"example.com/archive":                         true,
		"finalizers.example.com":                      true,
		"widgets.x-k8s.io/cleanup":                    true,
		"notkubernetes.io/a":                          true,
		"foregroundDeletion":                          false,
		"orphan":                                      false,
		"kubernetes":                                  false,
		"kubernetes.io/pvc-protection":                false,
		"service.kubernetes.io/load-balancer-cleanup": false,
		"customresourcecleanup.apiextensions.k8s.io":  false,
	}
	for finalizer, want := range tests {
		object := fields{"apiVersion": "v1", "kind": "Thing", "metadata": fields{"name": "a", "finalizers": []any{finalizer}}}
		if got := strings.Contains(render(t, object), finalizer); got != want {
			t.Errorf("%s kept: %v, want %v", finalizer, got, want)
		}
	}
}

func TestStatusIsKeptOnlyAsContent(t *testing.T) {
	status := fields{"ready": true}
	written := func(subresource string) fields {
		return fields{"name": "a", "managedFields": []any{fields{"manager": "m", "subresource": subresource}}}
	}
	tests := map[string]struct {
		object fields
		want   bool
	}{
		"all there is":                {fields{"metadata": fields{"name": "a"}, "status": status}, true},
		"all there is, no metadata":   {fields{"status": status}, true},
		"written as part of the body": {fields{"metadata": written(""), "status": status}, true},
		"written as a subresource":    {fields{"metadata": written("status"), "status": status}, false},
		"beside a spec":               {fields{"metadata": fields{"name": "a"}, "spec": fields{}, "status": status}, false},
		"beside data":                 {fields{"metadata": fields{"name": "a"}, "data": fields{"a": "b"}, "status": status}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.object["apiVersion"], test.object["kind"] = "example.com/v1", "Thing"
			if got := strings.Contains(render(t, test.object), "status:"); got != test.want {
				t.Errorf("status kept: %v, want %v", got, test.want)
			}
		})
	}
}

// A copy of the object is no content of any object; what a person writes to keep a tool from making one is.
func TestCopiesOfTheObjectAreDropped(t *testing.T) {
	for _, kind := range []string{"Secret", "ConfigMap", "Widget"} {
		for _, key := range annotationtest.Configurations() {
			got := render(t, fields{
				"apiVersion": "v1", "kind": kind, "metadata": fields{"name": "a", "annotations": fields{key: `{"data":{"a":"hunter2"}}`}},
			})
			if strings.Contains(got, "hunter2") || strings.Contains(got, "annotations") {
				t.Errorf("%s of a %s is kept:\n%s", key, kind, got)
			}
		}
	}
	for _, value := range []string{"skip", "-"} {
		const key = "app.oam.dev/last-applied-configuration"
		got := render(t, fields{"apiVersion": "v1", "kind": "ConfigMap", "metadata": fields{"name": "a", "annotations": fields{key: value}}})
		if !strings.Contains(got, key) {
			t.Errorf("%s: %s is dropped", key, value)
		}
	}
}

func TestAllocatedNodePortsAreDropped(t *testing.T) {
	owning := func(field string) []any {
		port := fields{"f:port": fields{}, field: fields{}}
		return []any{
			fields{"manager": "other", "fieldsV1": fields{"f:metadata": fields{}}},
			fields{"manager": "m", "fieldsV1": fields{"f:spec": fields{"f:ports": fields{`k:{"port":80,"protocol":"TCP"}`: port}}}},
		}
	}
	tests := map[string]struct {
		metadata fields
		want     bool
	}{
		"asked for":           {fields{"uid": "u", "managedFields": owning("f:nodePort")}, true},
		"allocated":           {fields{"uid": "u", "managedFields": owning("f:name")}, false},
		"no record":           {fields{"uid": "u"}, false},
		"never in a cluster":  {fields{"name": "a"}, true},
		"record with no sets": {fields{"uid": "u", "managedFields": []any{fields{"manager": "m"}, "?"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fields{"apiVersion": "v1", "kind": "Service", "metadata": test.metadata, "spec": fields{
				"ports": []any{fields{"port": int64(80), "protocol": "TCP", "nodePort": int64(30080)}},
			}}
			if got := strings.Contains(render(t, object), "nodePort: 30080"); got != test.want {
				t.Errorf("nodePort kept: %v, want %v", got, test.want)
			}
		})
	}
}

func TestInjectedAuthoritiesAreDropped(t *testing.T) {
	client := func() fields { return fields{"service": fields{"name": "hook"}, "caBundle": "Q0E="} }
	objects := map[string]fields{
		"APIService": {"apiVersion": "apiregistration.k8s.io/v1", "spec": fields{"group": "example.com", "caBundle": "Q0E="}},
		"CustomResourceDefinition": {"apiVersion": "apiextensions.k8s.io/v1", "spec": fields{
			"group": "example.com", "conversion": fields{"webhook": fields{"clientConfig": client()}}}},
		"MutatingWebhookConfiguration": {"apiVersion": "admissionregistration.k8s.io/v1", "webhooks": []any{fields{"clientConfig": client()}}},
		"ValidatingWebhookConfiguration": {
			"apiVersion": "admissionregistration.k8s.io/v1", "webhooks": []any{fields{"name": "a"}, fields{"clientConfig": client()}},
		},
		"Certificate": {"apiVersion": "example.com/v1", "spec": fields{"caBundle": "Q0E="}},
	}
	for kind, object := range objects {
		object["kind"] = kind
		for annotation, dropped := range map[string]bool{
			"cert-manager.io/inject-ca-from": true, "cert-manager.io/inject-ca-from-secret": true, "cert-manager.io/inject-apiserver-ca": true,
			"service.beta.openshift.io/inject-cabundle": true, "example.com/other": false,
		} {
			object["metadata"] = fields{"name": "a", "annotations": fields{annotation: "true"}}
			got := render(t, object)
			if want := dropped && kind != "Certificate"; strings.Contains(got, "caBundle") == want {
				t.Errorf("%s with %s: caBundle dropped: %v, want %v:\n%s", kind, annotation, !want, want, got)
			}
			if !strings.Contains(got, annotation) || strings.Contains(got, "hook") != (kind != "APIService" && kind != "Certificate") {
				t.Errorf("%s with %s lost something:\n%s", kind, annotation, got)
			}
		}
	}
}

// A rule for a built-in type must not reach a custom resource of the same kind, nor trip over a field of another shape.
func TestRulesStayWithTheirTypes(t *testing.T) {
	custom := fields{
		"apiVersion": "serving.knative.dev/v1", "kind": "Service", "spec": fields{"clusterIP": "10.0.0.1", "healthCheckNodePort": int64(1)},
	}
	if got := render(t, custom); !strings.Contains(got, "clusterIP") || !strings.Contains(got, "healthCheckNodePort") {
		t.Errorf("a custom resource lost fields:\n%s", got)
	}
	kinds := map[string][]string{
		"v1": {
			"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod",
			"PodTemplate", "ReplicationController", "Secret", "Service", "ServiceAccount",
		},
		"apps/v1":                      {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
		"batch/v1":                     {"CronJob", "Job"},
		"rbac.authorization.k8s.io/v1": {"ClusterRole"},
		"autoscaling/v1":               {"HorizontalPodAutoscaler"},
		"apiregistration.k8s.io/v1":    {"APIService"},
	}
	odd := []any{"text", int64(1), nil, []any{}, []any{nil, "a", []any{}}, fields{}, fields{"template": "a", "ports": "a", "metadata": nil}}
	for apiVersion, names := range kinds {
		for _, kind := range names {
			for _, value := range odd {
				render(t, fields{
					"apiVersion": apiVersion, "kind": kind, "metadata": value, "spec": value, "secrets": value, "template": value, "data": value,
				})
			}
		}
	}
}
