// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/test/testkit"
)

// discovery returns the types that the source cluster serves.
func discovery() testkit.Discovery {
	verbs := metav1.Verbs{"get", "list", "watch"}
	return testkit.Discovery{
		{GroupVersion: appsv1.SchemeGroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: verbs},
			{Name: "statefulsets", Kind: "StatefulSet", Namespaced: true, Verbs: verbs},
			{Name: "daemonsets", Kind: "DaemonSet", Namespaced: true, Verbs: verbs},
			{Name: "replicasets", Kind: "ReplicaSet", Namespaced: true, Verbs: verbs},
		}},
		{GroupVersion: batchv1.SchemeGroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: "jobs", Kind: "Job", Namespaced: true, Verbs: verbs},
			{Name: "cronjobs", Kind: "CronJob", Namespaced: true, Verbs: verbs},
		}},
	}
}

func namespace(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}

// deployment returns a Deployment in production.
func deployment(name, image string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": name, "namespace": "production", "uid": "uid-of-" + name, "labels": map[string]any{"app": name},
		},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}},
		},
	}}
}

// put creates or updates a Deployment of the source.
func (s *fixture) put(name, image string, changes ...func(*unstructured.Unstructured)) {
	s.Helper()
	object := deployment(name, image)
	s.resourceVersion++
	object.SetResourceVersion(strconv.Itoa(s.resourceVersion))
	for _, change := range changes {
		change(object)
	}
	err := s.source.Tracker().Update(deployments, object, "production")
	if apierrors.IsNotFound(err) {
		err = s.source.Tracker().Create(deployments, object, "production")
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) remove(name string) {
	s.Helper()
	if err := s.source.Tracker().Delete(deployments, "production", name); err != nil {
		s.Fatal(err)
	}
}
