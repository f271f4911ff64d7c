// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestNamespacesFollowLabels(t *testing.T) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", Labels: map[string]string{"tier": "front"}, Annotations: map[string]string{"foreign": "long text"},
		},
	}
	client := fake.NewSimpleMetadataClient(scheme, object.DeepCopy())
	namespaces, err := watch.NewNamespaces(client)
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var changes []string
	namespaces.Subscribe(func(change watch.NamespaceChange) {
		mutex.Lock()
		defer mutex.Unlock()
		changes = append(changes, fmt.Sprint(labelsOf(change.Before), " -> ", labelsOf(change.After)))
	})
	expect := func(want ...string) {
		t.Helper()
		testkit.EventuallyTrue(t, fmt.Sprint(want), func() bool {
			mutex.Lock()
			defer mutex.Unlock()
			return fmt.Sprint(changes) == fmt.Sprint(want)
		})
	}
	run(t, namespaces.Run)
	if !namespaces.WaitForSync(t.Context()) {
		t.Fatal("no sync")
	}
	expect("none -> tier=front")
	if got, _ := namespaces.Get("shop"); len(got.Annotations) != 0 || got.Labels["tier"] != "front" {
		t.Errorf("got %+v", got)
	}

	update := func(change func()) {
		t.Helper()
		change()
		if err := client.Tracker().Update(resource, object.DeepCopy(), ""); err != nil {
			t.Fatal(err)
		}
	}
	update(func() { object.Annotations["foreign"] = "other text" })
	update(func() { object.Labels["tier"] = "back" })
	expect("none -> tier=front", "tier=front -> tier=back")
	update(func() { object.Annotations["configbutler.ai/mirror"] = "false" })
	expect("none -> tier=front", "tier=front -> tier=back", "tier=back -> tier=back")
	if got, _ := namespaces.Get("shop"); got.Annotations["configbutler.ai/mirror"] != "false" {
		t.Errorf("got %+v", got)
	}

	if err := client.Tracker().Delete(resource, "", "shop"); err != nil {
		t.Fatal(err)
	}
	expect("none -> tier=front", "tier=front -> tier=back", "tier=back -> tier=back", "tier=back -> none")
	if _, ok := namespaces.Get("shop"); ok {
		t.Error("the namespace is still there")
	}
}

func labelsOf(namespace *watch.Namespace) string {
	if namespace == nil {
		return "none"
	}
	return labels.FormatLabels(namespace.Labels)
}
