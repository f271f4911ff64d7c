// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package capture_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

func served(group, version, resource string, preferred bool) watch.Type {
	return watch.Type{
		Resource:  schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Preferred: preferred, Namespaced: true, Watchable: true,
	}
}

func TestTypes(t *testing.T) {
	snapshot := watch.NewSnapshot([]watch.Type{
		served("apps", "v1", "deployments", true), served("apps", "v1beta2", "deployments", false),
		served("apps", "v1", "statefulsets", true), served("apps", "v1", "daemonsets", true),
		served("apps", "v1", "replicasets", true), served("apps", "v1", "controllerrevisions", true),
		served("extensions", "v1beta1", "deployments", true), served("batch.example.com", "v1", "jobs", true),
		served("batch", "v2", "cronjobs", true), served("batch", "v1", "cronjobs", false),
	}, map[schema.GroupVersion]string{{Group: "batch", Version: "v1"}: "no answer"})
	types, missing := capture.Types(snapshot)
	got := map[v1alpha1.WorkloadKind]string{}
	for kind, resource := range types {
		got[kind] = resource.GroupResource().String() + "/" + resource.Version
	}
	want := map[v1alpha1.WorkloadKind]string{
		v1alpha1.WorkloadDeployment: "deployments.apps/v1", v1alpha1.WorkloadStatefulSet: "statefulsets.apps/v1",
		v1alpha1.WorkloadDaemonSet: "daemonsets.apps/v1", v1alpha1.WorkloadReplicaSet: "replicasets.apps/v1",
		v1alpha1.WorkloadCronJob: "cronjobs.batch/v2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types differ:\n%s", diff)
	}
	if len(missing) != 1 || !missing[v1alpha1.WorkloadJob].Uncertain {
		t.Errorf("missing = %+v", missing)
	}
}

func TestTypesOfAClusterWithoutWorkloads(t *testing.T) {
	types, missing := capture.Types(watch.NewSnapshot(nil, nil))
	if len(types) != 0 || len(missing) != 6 {
		t.Errorf("types = %v, missing = %v", types, missing)
	}
	for kind, why := range missing {
		if why.Reason == "" || why.Uncertain {
			t.Errorf("%s: %+v", kind, why)
		}
	}
}

func TestReferenceTo(t *testing.T) {
	for kind, apiVersion := range map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1",
		"ReplicaSet": "apps/v1beta2", "Job": "batch/v1", "CronJob": "batch/v2",
	} {
		got, ok := capture.ReferenceTo(object(apiVersion, kind, "web", nil))
		if want := (v1alpha1.WorkloadReference{Kind: v1alpha1.WorkloadKind(kind), Name: "web"}); !ok || got != want {
			t.Errorf("%s: %v, %v", kind, got, ok)
		}
	}
	for kind, apiVersion := range map[string]string{
		"Job": "batch.volcano.sh/v1alpha1", "Deployment": "v1", "ReplicationController": "v1",
		"Pod": "v1", "ConfigMap": "v1", "ControllerRevision": "apps/v1",
	} {
		if got, ok := capture.ReferenceTo(object(apiVersion, kind, "web", nil)); ok {
			t.Errorf("%s of %s counts as a workload: %v", kind, apiVersion, got)
		}
	}
}

// object returns an object in a namespace, with labels.
func object(apiVersion, kind, name string, labels map[string]string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	out.SetNamespace("production")
	out.SetName(name)
	out.SetLabels(labels)
	return out
}
