// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
	const discovery = "discovery.k8s.io"
	// written are addresses, by a field manager, with more metadata.
	written := func(manager string, more fields) fields {
		metadata := fields{"namespace": "shop", "name": "db", "managedFields": []any{fields{
			"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields{"f:subsets": fields{}},
		}}}
		maps.Copy(metadata, more)
		return fields{"metadata": metadata}
	}
	managedBy := func(name string) fields {
		return written("any", fields{"labels": fields{"endpointslice.kubernetes.io/managed-by": name}})
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
		"handmade Endpoints":     {"", "endpoints", written("kubectl-create", fields{}), false},
		"labelled Endpoints": {
			"", "endpoints", written("", fields{"labels": fields{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}}), true,
		},
		"old Endpoints": {"", "endpoints", written("kube-controller-manager", fields{}), true},
		"Endpoints of Pods": {
			"", "endpoints", written("", fields{"annotations": fields{"endpoints.kubernetes.io/last-change-trigger-time": "x"}}), true,
		},
		"elected leader": {
			"", "endpoints", written("", fields{"annotations": fields{"control-plane.alpha.kubernetes.io/leader": "{}"}}), true,
		},
		"lock of Patroni": {
			"", "endpoints", written("Patroni", fields{"annotations": fields{"renewTime": "x", "acquireTime": "x", "leader": "db-0"}}), true,
		},
		"lock with a position": {
			"", "endpoints", written("Patroni", fields{"annotations": fields{"renewTime": "x", "optime": "67108864"}}), true,
		},
		"other notes of Patroni": {
			"", "endpoints", written("Patroni", fields{"annotations": fields{"history": "[]", "optime": "67108864"}}), false,
		},
		"Endpoints with a time": {"", "endpoints", written("kubectl-create", fields{"annotations": fields{"renewTime": "x"}}), false},
		"EndpointSlice of a lock": {discovery, "endpointslices", written("any", fields{
			"labels":      fields{"endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io"},
			"annotations": fields{"renewTime": "x", "acquireTime": "x"},
		}), true},
		"handmade EndpointSlice": {discovery, "endpointslices", written("kubectl-create", fields{}), false},
		"EndpointSlice of staff": {discovery, "endpointslices", managedBy("cluster-admins"), false},
		"EndpointSlice of Pods":  {discovery, "endpointslices", managedBy("endpointslice-controller.k8s.io"), true},
		"mirrored Endpoints":     {discovery, "endpointslices", managedBy("endpointslicemirroring-controller.k8s.io"), true},
		"another controller's":   {discovery, "endpointslices", managedBy("lighthouse-agent.submariner.io"), true},
		"Service with the label": {"", "services", managedBy("endpointslice-controller.k8s.io"), false},
		"Service of the name":    {"", "services", at("shop", "kubernetes"), false},
		"other Service":          {"", "services", at("default", "web"), false},
		"its ConfigMap":          {"", "configmaps", at("default", "kubernetes"), false},
		"bootstrap ClusterRole":  {rbac, "clusterroles", labelled("kubernetes.io/bootstrapping"), true},
		"bootstrap RoleBinding":  {rbac, "rolebindings", labelled("kubernetes.io/bootstrapping"), true},
		"own ClusterRole":        {rbac, "clusterroles", labelled("app"), false},
		"label of another type":  {"", "configmaps", labelled("kubernetes.io/bootstrapping"), false},
		"built-in APIService":    {aggregator, "apiservices", labelled("kube-aggregator.kubernetes.io/automanaged"), true},
		"own APIService":         {aggregator, "apiservices", labelled("app"), false},
		"this server's": {
			aggregator, "apiservices", fields{"metadata": fields{"name": "a"}, "spec": fields{"group": "configbutler.ai"}}, true,
		},
		"another server's": {
			aggregator, "apiservices", fields{"metadata": fields{"name": "a"}, "spec": fields{"group": "metrics.k8s.io"}}, false,
		},
		"system priority":      {"scheduling.k8s.io", "priorityclasses", named("system-node-critical"), true},
		"own priority":         {"scheduling.k8s.io", "priorityclasses", named("batch"), false},
		"address of a Service": {networking, "ipaddresses", allocated("ipallocator.k8s.io"), true},
		"own address":          {networking, "ipaddresses", allocated("example.com"), false},
		"first range":          {networking, "servicecidrs", named("kubernetes"), true},
		"own range":            {networking, "servicecidrs", named("more"), false},
		"of a controller":      {"apps", "replicasets", owned(true), true},
		"of an owner":          {"apps", "replicasets", owned(false), false},
		"no metadata":          {"", "configmaps", fields{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			resource := schema.GroupResource{Group: test.group, Resource: test.resource}
			reason, made := ClusterGenerated(resource, &unstructured.Unstructured{Object: test.object})
			if made != test.want || (reason != "") != test.want {
				t.Errorf("ClusterGenerated() = %q, %v; want %v", reason, made, test.want)
			}
		})
	}
}

// What the selectors leave out is left out by ClusterGenerated, too, and what people make is not.
func TestNotClusterMade(t *testing.T) {
	for _, test := range []struct {
		group, resource, label string
		made, kept             []string
	}{
		{"", "endpoints", "endpoints.kubernetes.io/managed-by", []string{"endpoint-controller"}, []string{"", "staff"}},
		{
			"discovery.k8s.io", "endpointslices", "endpointslice.kubernetes.io/managed-by",
			[]string{"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"}, []string{"", "staff"},
		},
	} {
		resource := schema.GroupResource{Group: test.group, Resource: test.resource}
		selector, err := labels.Parse(NotClusterGenerated(resource))
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range slices.Concat(test.made, test.kept) {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "db"}}}
			if value != "" {
				object.SetLabels(map[string]string{test.label: value})
			}
			want := slices.Contains(test.kept, value)
			if selected := selector.Matches(labels.Set(object.GetLabels())); selected != want {
				t.Errorf("%s with the label %q: selected: %v, want %v", resource, value, selected, want)
			}
			if _, made := ClusterGenerated(resource, object); made == want {
				t.Errorf("%s with the label %q: made by the cluster: %v, want %v", resource, value, made, !want)
			}
		}
	}
	if selector := NotClusterGenerated(schema.GroupResource{Resource: "configmaps"}); selector != "" {
		t.Errorf("ConfigMaps are selected by %q", selector)
	}
}
