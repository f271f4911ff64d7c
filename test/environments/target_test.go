// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// kinds are the types of the objects that users and environments write.
var kinds = map[string]schema.GroupVersionResource{
	"ServiceAccount":          {Version: "v1", Resource: "serviceaccounts"},
	"ConfigMap":               {Version: "v1", Resource: "configmaps"},
	"Secret":                  {Version: "v1", Resource: "secrets"},
	"Service":                 {Version: "v1", Resource: "services"},
	"Deployment":              {Group: "apps", Version: "v1", Resource: "deployments"},
	"ReplicaSet":              {Group: "apps", Version: "v1", Resource: "replicasets"},
	"StatefulSet":             {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"DaemonSet":               {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"CronJob":                 {Group: "batch", Version: "v1", Resource: "cronjobs"},
	"Job":                     {Group: "batch", Version: "v1", Resource: "jobs"},
	"HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	"PodDisruptionBudget":     {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"Ingress":                 {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"NetworkPolicy":           {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"Gateway":                 {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"},
	"GRPCRoute":               {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "grpcroutes"},
	"HTTPRoute":               {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"},
	"ReferenceGrant":          {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "referencegrants"},
}

// objects are the objects of a namespace by name, such as "ConfigMap settings".
type objects map[string]*unstructured.Unstructured

// objectsIn returns the objects of a namespace, without those that the cluster creates and those with a controller.
func (s *testCluster) objectsIn(t *testing.T, namespace string) objects {
	t.Helper()
	lists := map[string]*unstructured.UnstructuredList{}
	group, ctx := errgroup.WithContext(t.Context())
	for kind, resource := range kinds {
		list := &unstructured.UnstructuredList{}
		lists[kind] = list
		group.Go(func() error {
			found, err := s.admin.Dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err == nil {
				*list = *found
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	found := objects{}
	for kind, list := range lists {
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				found[kind+" "+list.Items[i].GetName()] = &list.Items[i]
			}
		}
	}
	delete(found, "ConfigMap kube-root-ca.crt")
	delete(found, "ServiceAccount default")
	return found
}

func (o objects) names() []string { return slices.Sorted(maps.Keys(o)) }

// settled returns the objects without the fields that the cluster writes.
func (o objects) settled() map[string]map[string]any {
	out := map[string]map[string]any{}
	for name, object := range o {
		content := object.DeepCopy()
		delete(content.Object, "status")
		for _, field := range []string{"managedFields", "resourceVersion"} {
			unstructured.RemoveNestedField(content.Object, "metadata", field)
		}
		for _, annotation := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
			unstructured.RemoveNestedField(content.Object, "metadata", "annotations", annotation)
		}
		out[name] = content.Object
	}
	return out
}

// expectUnchanged expects that a namespace is unchanged, generations and uids included.
func (s *testCluster) expectUnchanged(t *testing.T, namespace string, before objects) {
	t.Helper()
	if diff := cmp.Diff(before.settled(), s.objectsIn(t, namespace).settled()); diff != "" {
		t.Errorf("%s was changed: before -, now +:\n%s", namespace, diff)
	}
}

// object returns an object of a namespace by a name such as "ConfigMap settings", nil if it does not exist.
func (s *testCluster) object(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return s.objectsIn(t, namespace)[name]
}

// text returns the field of an object at a path as text, empty if there is none.
func text(object *unstructured.Unstructured, path ...string) string {
	if object == nil {
		return ""
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// container returns a container of a workload.
func container(t *testing.T, object *unstructured.Unstructured, name string) *unstructured.Unstructured {
	t.Helper()
	if object == nil {
		t.Fatal("workload does not exist")
	}
	path := []string{"spec", "template", "spec", "containers"}
	found, _, _ := unstructured.NestedSlice(object.Object, path...)
	for _, each := range found {
		if fields, ok := each.(map[string]any); ok && fields["name"] == name {
			return &unstructured.Unstructured{Object: fields}
		}
	}
	t.Fatalf("%s has no container %s", object.GetName(), name)
	return nil
}

// waitForDeletion waits until an object of a namespace does not exist.
func (s *testCluster) waitForDeletion(t *testing.T, namespace, name string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%s of %s is deleted", name, namespace), func(context.Context) error {
		if s.object(t, namespace, name) != nil {
			return errors.New("it still exists")
		}
		return nil
	})
}
