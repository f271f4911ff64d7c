// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestClusterMade(t *testing.T) {
	type fields = map[string]any
	named := func(name string) fields { return fields{"metadata": fields{"name": name}} }
	labelled := func(label string) fields {
		return fields{"metadata": fields{"name": "a", "labels": fields{label: "x"}}}
	}
	owned := func(controller any) fields {
		return fields{"metadata": fields{"name": "a", "ownerReferences": []any{fields{"kind": "Other"}, fields{"controller": controller}}}}
	}
	const rbac, aggregator, networking = "rbac.authorization.k8s.io", "apiregistration.k8s.io", "networking.k8s.io"
	allocated := func(by string) fields {
		return fields{"metadata": fields{"name": "10.0.0.7", "labels": fields{"ipaddress.kubernetes.io/managed-by": by}}}
	}
	at := func(namespace, name string) fields {
		return fields{"metadata": fields{"namespace": namespace, "name": name}}
	}
	// token is a Secret that one has created, and for which another has filled in the token.
	token := func(creator, filler string) fields {
		entry := func(manager string, owned fields) fields {
			return fields{"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": owned}
		}
		return fields{"type": "kubernetes.io/service-account-token", "metadata": fields{"name": "robot", "managedFields": []any{
			entry(creator, fields{"f:type": fields{}}), entry(filler, fields{"f:data": fields{"f:token": fields{}}}),
		}}}
	}
	tests := map[string]struct {
		group, resource string
		object          fields
		want            bool
	}{
		"root certificate":       {"", "configmaps", named("kube-root-ca.crt"), true},
		"other ConfigMap":        {"", "configmaps", named("web"), false},
		"Secret of the name":     {"", "secrets", named("kube-root-ca.crt"), false},
		"default ServiceAccount": {"", "serviceaccounts", named("default"), true},
		"other ServiceAccount":   {"", "serviceaccounts", named("robot"), false},
		"default ConfigMap":      {"", "configmaps", named("default"), false},
		"token that was given":   {"", "secrets", token("kube-controller-manager", "kube-apiserver"), true},
		"token of a user":        {"", "secrets", token("kubectl-create", "kube-controller-manager"), false},
		"token without managers": {"", "secrets", fields{"type": "kubernetes.io/service-account-token"}, false},
		"Helm release":           {"", "secrets", fields{"type": "helm.sh/release.v1"}, true},
		"Helm release by name":   {"", "secrets", named("sh.helm.release.v1.web.v3"), true},
		"Helm release in a map":  {"", "configmaps", named("sh.helm.release.v1.web.v3"), true},
		"Secret of Helm's user":  {"", "secrets", named("sh.helm"), false},
		"API server":             {"", "services", at("default", "kubernetes"), true},
		"its Endpoints":          {"", "endpoints", at("default", "kubernetes"), true},
		"its EndpointSlice":      {"discovery.k8s.io", "endpointslices", at("default", "kubernetes"), true},
		"Service of the name":    {"", "services", at("shop", "kubernetes"), false},
		"other Service":          {"", "services", at("default", "web"), false},
		"its ConfigMap":          {"", "configmaps", at("default", "kubernetes"), false},
		"bootstrap ClusterRole":  {rbac, "clusterroles", labelled("kubernetes.io/bootstrapping"), true},
		"bootstrap RoleBinding":  {rbac, "rolebindings", labelled("kubernetes.io/bootstrapping"), true},
		"own ClusterRole":        {rbac, "clusterroles", labelled("app"), false},
		"label elsewhere":        {"", "configmaps", labelled("kubernetes.io/bootstrapping"), false},
		"built-in APIService":    {aggregator, "apiservices", labelled("kube-aggregator.kubernetes.io/automanaged"), true},
		"own APIService":         {aggregator, "apiservices", labelled("app"), false},
		"this server's":          {aggregator, "apiservices", fields{"metadata": fields{"name": "a"}, "spec": fields{"group": "configbutler.ai"}}, true},
		"somebody else's":        {aggregator, "apiservices", fields{"metadata": fields{"name": "a"}, "spec": fields{"group": "metrics.k8s.io"}}, false},
		"system priority":        {"scheduling.k8s.io", "priorityclasses", named("system-node-critical"), true},
		"own priority":           {"scheduling.k8s.io", "priorityclasses", named("batch"), false},
		"address of a Service":   {networking, "ipaddresses", allocated("ipallocator.k8s.io"), true},
		"own address":            {networking, "ipaddresses", allocated("example.com"), false},
		"first range":            {networking, "servicecidrs", named("kubernetes"), true},
		"own range":              {networking, "servicecidrs", named("more"), false},
		"of a controller":        {"apps", "replicasets", owned(true), true},
		"of an owner":            {"apps", "replicasets", owned(false), false},
		"no metadata":            {"", "configmaps", fields{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resource := schema.GroupResource{Group: test.group, Resource: test.resource}
			reason, made := ClusterMade(resource, &unstructured.Unstructured{Object: test.object})
			if made != test.want || (reason != "") != test.want {
				t.Errorf("ClusterMade() = %q, %v; want %v", reason, made, test.want)
			}
		})
	}
}
