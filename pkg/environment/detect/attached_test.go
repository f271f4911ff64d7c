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
	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
)

// notifications are the environments that were notified of changes in their sources.
type notifications struct {
	mu    sync.Mutex
	names []string
}

func (h *notifications) add(environments ...types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range environments {
		h.names = append(h.names, name.Name)
	}
}

// take returns the environments that were notified since the last call, each once.
func (h *notifications) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(h.names)))
	h.names = nil
	return strings.Join(names, " ")
}

// newCluster returns a cluster without objects, with the built-in types and those of the Gateway API.
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

// clusterTypes are the types of a cluster that may have the Gateway API.
type clusterTypes struct {
	meta.RESTMapper
	mu sync.Mutex
	// served is true if the API is served. failure is the error of discovery.
	served  bool
	failure error
	// asked counts the calls of RESTMapping.
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

// serve sets whether the cluster serves the API, and waits until the types were discovered twice: the watches match the first result by
// then.
func (s *fixture) serve(served bool, failure error) {
	s.Helper()
	s.types.mu.Lock()
	s.types.served, s.types.failure = served, failure
	s.types.asked = 0
	s.types.mu.Unlock()
	s.eventually("the types are discovered", func() error {
		s.types.mu.Lock()
		defer s.types.mu.Unlock()
		if s.types.asked <= 2*len(plan.GatewayAPIKinds()) {
			return errors.New("too few calls of RESTMapping")
		}
		return nil
	})
}

// TestGatewayAPIInstalledLater installs the Gateway API, has discovery fail, and removes the API.
func TestGatewayAPIInstalledLater(t *testing.T) {
	s := begunFixture(t)
	s.stop()
	s.sources = map[string][]types.NamespacedName{production: {named("alice")}}
	s.start(0)
	builtIn := []string{"production/configmaps", "production/horizontalpodautoscalers", "production/ingresses", "production/networkpolicies",
		"production/poddisruptionbudgets", "production/secrets", "production/serviceaccounts", "production/services"}
	s.watching(builtIn...)
	s.serve(true, nil)
	all := slices.Sorted(slices.Values(
		append(builtIn, "production/gateways", "production/grpcroutes", "production/httproutes", "production/referencegrants")))
	s.watching(all...)
	s.expectEnvironments("alice")
	s.rests()
	s.notified.take()

	s.serve(false, errors.New("no answer"))
	route := environmenttest.Object(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute,
		metadata: {name: web, namespace: production, resourceVersion: "1"}, spec: {hostnames: [a]}}`)
	if err := s.source.Tracker().Create(gatewayType("httproutes"), route, production); err != nil {
		t.Fatal(err)
	}
	s.expectEnvironments("alice")

	s.serve(false, nil)
	s.rests()
	s.notified.take()
	if err := s.source.Tracker().Delete(gatewayType("httproutes"), production, "web"); err != nil {
		t.Fatal(err)
	}
	s.windowPasses()
	if got := s.notified.take(); got != "" {
		t.Errorf("notified of a change that is not watched: %q", got)
	}
}

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// scale sets an autoscaler in production, whose status changes each time.
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

// expectEnvironments waits until exactly these environments were notified.
func (s *fixture) expectEnvironments(want string) {
	s.Helper()
	s.eventually("notifies "+want, func() error {
		if got := s.notified.take(); got != want {
			return fmt.Errorf("notified %q, want %q", got, want)
		}
		return nil
	})
}

// TestAttachedObjects creates, changes and deletes an autoscaler: all environments of the source are notified, with or without a copy. Of a
// change of another object, only the environments with a copy are notified.
func TestAttachedObjects(t *testing.T) {
	const ignored = "dependency_events_ignored_total attached"
	before := metrictest.Values(t)[ignored]
	s := begunFixture(t)
	s.stop()
	s.sources = map[string][]types.NamespacedName{production: {named("alice"), named("bob"), named("carol")}}
	s.start(0)
	s.watching("production/configmaps", "production/horizontalpodautoscalers", "production/ingresses", "production/networkpolicies",
		"production/poddisruptionbudgets", "production/secrets", "production/serviceaccounts", "production/services")
	s.expectEnvironments("alice bob carol")
	s.rests()
	s.notified.take()
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
	s.rests()
	s.notified.take()
	s.scale(5)
	s.windowPasses()
	if got := s.notified.take(); got != "" {
		t.Errorf("notified of a change of the status: %q", got)
	}
	s.put("secret-database", "another")
	s.expectEnvironments("alice")
	if after := metrictest.Values(t)[ignored]; after <= before {
		t.Errorf("%s: %v, before %v", ignored, after, before)
	}

	s.stop()
	s.sources = nil
	s.start(0)
	s.watching("production/configmaps", "production/secrets", "production/serviceaccounts", "production/services")
}
