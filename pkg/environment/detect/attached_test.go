// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// hearing are environments that have heard that their sources have changed.
type hearing struct {
	mu    sync.Mutex
	names []string
}

func (h *hearing) add(environments ...types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range environments {
		h.names = append(h.names, name.Name)
	}
}

// take returns who has heard since it was called last, each once.
func (h *hearing) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(h.names)))
	h.names = nil
	return strings.Join(names, " ")
}

// newCluster returns one without objects, whose types are those that are built in and those of the Gateway API.
func newCluster() *dynamicfake.FakeDynamicClient {
	types := runtime.NewScheme()
	for gvk := range scheme.Scheme.AllKnownTypes() {
		var of runtime.Object = &unstructured.Unstructured{}
		if strings.HasSuffix(gvk.Kind, "List") {
			of = &unstructured.UnstructuredList{}
		}
		types.AddKnownTypeWithName(gvk, of)
	}
	lists := map[schema.GroupVersionResource]string{}
	for _, kind := range plan.GatewayAPIKinds() {
		lists[gatewayType(strings.ToLower(kind.Kind)+"s")] = kind.Kind + "List"
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(types, lists)
}

func gatewayType(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: gatewayv1.GroupName, Version: "v1", Resource: resource}
}

// clusterTypes are those of a cluster that may have the Gateway API.
type clusterTypes struct {
	meta.RESTMapper
	mu sync.Mutex
	// served says that the API is there, failure why that cannot be told.
	served  bool
	failure error
	// asked counts questions.
	asked int
}

func (c *clusterTypes) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.failure != nil {
		return nil, c.failure
	}
	if !c.served {
		return nil, &meta.NoKindMatchError{GroupKind: kind}
	}
	return &meta.RESTMapping{Resource: gatewayType(strings.ToLower(kind.Kind) + "s")}, nil
}

// serve has the cluster have the API or not, and waits until that has been asked for twice: the watches are those of the first answer by then.
func (s *fixture) serve(served bool, failure error) {
	s.Helper()
	s.types.mu.Lock()
	s.types.served, s.types.failure = served, failure
	s.types.asked = 0
	s.types.mu.Unlock()
	s.eventually("it is found out which types there are", func() error {
		s.types.mu.Lock()
		defer s.types.mu.Unlock()
		if s.types.asked <= 2*len(plan.GatewayAPIKinds()) {
			return errors.New("it is not")
		}
		return nil
	})
}

// TestGatewayAPIThatIsInstalledLater has a cluster get the Gateway API, an API server that does not say what it serves, and a cluster
// that has the API no more.
func TestGatewayAPIInstalledLater(t *testing.T) {
	s := begunFixture(t)
	s.stop()
	s.sources = map[string][]types.NamespacedName{production: {named("alice")}}
	s.start(0)
	builtIn := []string{"production/configmaps", "production/horizontalpodautoscalers", "production/ingresses", "production/networkpolicies",
		"production/poddisruptionbudgets", "production/secrets", "production/serviceaccounts", "production/services"}
	s.watching(builtIn...)
	s.serve(true, nil)
	all := slices.Sorted(slices.Values(append(builtIn, "production/gateways", "production/grpcroutes", "production/httproutes", "production/referencegrants")))
	s.watching(all...)
	s.expectEnvironments("alice")
	s.rests()
	s.heard.take()

	s.serve(false, errors.New("no answer"))
	route := environmenttest.Object(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute,
		metadata: {name: web, namespace: production, resourceVersion: "1"}, spec: {hostnames: [a]}}`)
	if err := s.source.Tracker().Create(gatewayType("httproutes"), route, production); err != nil {
		t.Fatal(err)
	}
	s.expectEnvironments("alice")

	s.serve(false, nil)
	s.rests()
	s.heard.take()
	if err := s.source.Tracker().Delete(gatewayType("httproutes"), production, "web"); err != nil {
		t.Fatal(err)
	}
	s.windowPasses()
	if got := s.heard.take(); got != "" {
		t.Errorf("%q have heard of what is not watched", got)
	}
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// scale has an autoscaler in production, with a status that changes all the time.
func (s *fixture) scale(replicas int) {
	s.Helper()
	version := strconv.FormatInt(s.version.Add(1), 10)
	object := environmenttest.Object(s, fmt.Sprintf(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler,
		metadata: {name: web, namespace: %s, resourceVersion: %q}, status: {desiredReplicas: %s},
		spec: {maxReplicas: %d, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`, production, version, version, replicas))
	err := s.source.Tracker().Update(autoscalers, object, production)
	if apierrors.IsNotFound(err) {
		err = s.source.Tracker().Create(autoscalers, object, production)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// hears waits until exactly these environments have heard of a change.
func (s *fixture) expectEnvironments(want string) {
	s.Helper()
	s.eventually("hears "+want, func() error {
		if got := s.heard.take(); got != want {
			return fmt.Errorf("%q have heard, want %q", got, want)
		}
		return nil
	})
}

// TestCompanions has what is about workloads come, change and go: all environments of the source hear of it, whether they have a copy
// or not. Of what only some have a copy of, these hear.
func TestAttachedObjects(t *testing.T) {
	s := begunFixture(t)
	s.stop()
	s.sources = map[string][]types.NamespacedName{production: {named("alice"), named("bob"), named("carol")}}
	s.start(0)
	s.watching("production/configmaps", "production/horizontalpodautoscalers", "production/ingresses", "production/networkpolicies",
		"production/poddisruptionbudgets", "production/secrets", "production/serviceaccounts", "production/services")
	s.expectEnvironments("alice bob carol")
	s.rests()
	s.heard.take()
	s.scale(2)
	s.expectEnvironments("alice bob carol")
	s.scale(3)
	s.expectEnvironments("alice bob carol")
	if err := s.source.Tracker().Delete(autoscalers, production, "web"); err != nil {
		t.Fatal(err)
	}
	s.expectEnvironments("alice bob carol")
	s.scale(5)
	s.expectEnvironments("alice bob carol")
	s.scale(5)
	s.windowPasses()
	if got := s.heard.take(); got != "" {
		t.Errorf("%q have heard of a status", got)
	}
	s.put("secret-database", "another")
	s.expectEnvironments("alice")

	s.stop()
	s.sources = nil
	s.start(0)
	s.watching("production/configmaps", "production/secrets", "production/serviceaccounts", "production/services")
}
