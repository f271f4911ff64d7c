// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/test/testkit"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// cluster serves ConfigMaps and CustomResourceDefinitions.
type cluster struct {
	testing.TB
	whole *dynamicfake.FakeDynamicClient
	meta  *metadatafake.FakeMetadataClient

	mu      sync.Mutex
	version int
	// refusal is the error of lists of ConfigMaps; nil if they succeed.
	refusal error
	// discovery has the types that the cluster serves.
	discovery testkit.Discovery
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	metaScheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(metaScheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{
		TB: t, discovery: discovery(), meta: metadatafake.NewSimpleMetadataClient(metaScheme),
		whole: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme.Scheme, map[schema.GroupVersionResource]string{
			definitions: "CustomResourceDefinitionList",
		}),
	}
	c.meta.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refusal != nil, nil, c.refusal
	})
	return c
}

// refuse sets the error of lists of ConfigMaps.
func (c *cluster) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = err
}

func (c *cluster) nextVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}

// put creates ConfigMaps in namespace shop, or sets their label.
func (c *cluster) put(label string, names ...string) {
	c.Helper()
	for _, name := range names {
		object := &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "shop", UID: types.UID("uid-of-" + name), ResourceVersion: c.nextVersion(),
				Labels: map[string]string{"level": label}, CreationTimestamp: metav1.NewTime(noon),
			},
		}
		err := c.meta.Tracker().Update(configMaps, object, "shop")
		if apierrors.IsNotFound(err) {
			err = c.meta.Tracker().Create(configMaps, object, "shop")
		}
		if err != nil {
			c.Fatal(err)
		}
	}
}

// remove deletes a ConfigMap. It sets a new resourceVersion first: API servers do so on deletion, the tracker does not.
func (c *cluster) remove(name string) {
	c.Helper()
	c.put("gone", name)
	if err := c.meta.Tracker().Delete(configMaps, "shop", name); err != nil {
		c.Fatal(err)
	}
}

// define creates a CustomResourceDefinition.
func (c *cluster) define(plural, kind string) {
	c.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com", "uid": "uid-of-" + plural, "resourceVersion": c.nextVersion()},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": false, "storage": true}},
		},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}
	if err := c.whole.Tracker().Create(definitions, object, ""); err != nil {
		c.Fatal(err)
	}
}

// ServerGroupsAndResourcesWithContext returns the types that the cluster serves.
func (c *cluster) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.discovery.ServerGroupsAndResourcesWithContext(ctx)
}

// serveSecrets has the cluster serve Secrets, one of which exists, and its clients find out by an event of definitions.
func (c *cluster) serveSecrets() {
	c.Helper()
	secret := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "token", Namespace: "shop", UID: "uid-of-token", ResourceVersion: c.nextVersion(), CreationTimestamp: metav1.NewTime(noon),
		},
	}
	if err := c.meta.Tracker().Create(secrets, secret, "shop"); err != nil {
		c.Fatal(err)
	}
	c.mu.Lock()
	v1 := c.discovery[0].DeepCopy()
	v1.APIResources = append(v1.APIResources, metav1.APIResource{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: v1.APIResources[0].Verbs})
	c.discovery = append(testkit.Discovery{v1}, c.discovery[1:]...)
	c.mu.Unlock()
	event := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: definitions.GroupVersion().String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: "others.example.com", UID: "uid-of-others", ResourceVersion: c.nextVersion()},
	}
	if err := c.meta.Tracker().Create(definitions, event, ""); err != nil {
		c.Fatal(err)
	}
}

// discovery returns the types that the cluster serves at first.
func discovery() testkit.Discovery {
	verbs := metav1.Verbs{"get", "list", "watch"}
	return testkit.Discovery{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: verbs}}},
		{GroupVersion: definitions.GroupVersion().String(), APIResources: []metav1.APIResource{
			{Name: definitions.Resource, Kind: "CustomResourceDefinition", Verbs: verbs},
		}},
	}
}
