// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package installcheck_test

import (
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/serving/installcheck"
)

const apiServiceName = "v1alpha1.configbutler.ai"

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	webhooks    = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	}
	leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

	now = time.Now().Truncate(time.Second)

	// authority takes a second to make.
	authority = sync.OnceValues(func() ([]byte, error) {
		bundle, _, err := cert.GenerateSelfSignedCertKey("slipstream", nil, nil)
		return bundle, err
	})
)

// cluster answers as kube-apiserver does where all is good.
type cluster struct {
	t         *testing.T
	clock     *clocktesting.FakeClock
	discovery *fakediscovery.FakeDiscovery
	objects   *fakedynamic.FakeDynamicClient
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	bundle, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	resources, lists := served(t)
	return &cluster{
		t: t, clock: clocktesting.NewFakeClock(now),
		discovery: &fakediscovery.FakeDiscovery{
			Fake:               &clienttesting.Fake{Resources: []*metav1.APIResourceList{resources}},
			FakedServerVersion: &version.Info{GitVersion: "v1.37.1"},
		},
		objects: fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists,
			object(apiServices, "APIService", "", apiServiceName, map[string]any{
				"spec": map[string]any{
					"service":  map[string]any{"namespace": "slipstream-system", "name": "slipstream"},
					"caBundle": base64.StdEncoding.EncodeToString(bundle),
				},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
			}),
			object(leases, "Lease", "slipstream-system", "slipstream", map[string]any{"spec": map[string]any{
				"holderIdentity": "slipstream-0", "leaseDurationSeconds": int64(24), "renewTime": now.Format(metav1.RFC3339Micro),
			}}),
			object(webhooks, "ValidatingWebhookConfiguration", "", "slipstream-attribution", map[string]any{"webhooks": []any{
				map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "kubernetes"}}},
			}}),
		),
	}
}

// served are the resources of all kinds that have lists, in the order of their kinds.
func served(t *testing.T) (*metav1.APIResourceList, map[schema.GroupVersionResource]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	resources := &metav1.APIResourceList{GroupVersion: v1alpha1.SchemeGroupVersion.String()}
	lists := map[schema.GroupVersionResource]string{}
	for list := range scheme.KnownTypes(v1alpha1.SchemeGroupVersion) {
		if kind, found := strings.CutSuffix(list, "List"); found {
			name := plural(kind)
			lists[v1alpha1.SchemeGroupVersion.WithResource(name)] = list
			resources.APIResources = append(resources.APIResources, metav1.APIResource{Name: name, Kind: kind, Verbs: []string{"get", "list"}})
		}
	}
	slices.SortFunc(resources.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Kind, b.Kind) })
	return resources, lists
}

func plural(kind string) string { return strings.ToLower(kind) + "s" }

func object(of schema.GroupVersionResource, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: content}
	made.SetAPIVersion(of.GroupVersion().String())
	made.SetKind(kind)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// checkup is one of this cluster.
func (c *cluster) checkup(out io.Writer, limit time.Duration) *installcheck.Checker {
	return &installcheck.Checker{
		Discovery: c.discovery, Dynamic: c.objects, Namespace: "slipstream-system", Lease: "slipstream", Limit: limit, Clock: c.clock, Out: out,
	}
}

func (c *cluster) remove(of schema.GroupVersionResource, namespace, name string) {
	c.t.Helper()
	if err := c.objects.Tracker().Delete(of, namespace, name); err != nil {
		c.t.Fatal(err)
	}
}

// set gives a field of an object another value, or none.
func (c *cluster) set(of schema.GroupVersionResource, namespace, name string, value any, field ...string) {
	c.t.Helper()
	found, err := c.objects.Tracker().Get(of, namespace, name)
	if err != nil {
		c.t.Fatal(err)
	}
	changed := found.(*unstructured.Unstructured).DeepCopy()
	if value == nil {
		unstructured.RemoveNestedField(changed.Object, field...)
	} else if err := unstructured.SetNestedField(changed.Object, value, field...); err != nil {
		c.t.Fatal(err)
	}
	if err := c.objects.Tracker().Update(of, changed, namespace); err != nil {
		c.t.Fatal(err)
	}
}

// refuse makes requests fail.
func (c *cluster) refuse(verb, resource string, err error) {
	c.objects.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// stepUntil steps the clock whenever it has waiters, until done.
func (c *cluster) stepUntil(done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Millisecond):
			if c.clock.HasWaiters() {
				c.clock.Step(time.Second)
			}
		}
	}
}
