// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package teardown_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/teardown"
	"github.com/configbutler/slipstream/test/testkit"
)

// fixture has an environment that is being deleted, and its target.
type fixture struct {
	*environmenttest.Cluster
	environment *v1alpha1.Environment
	remover     *teardown.Remover
	// stays are the reported reasons for which the namespace was not deleted.
	stays []string
}

// newFixture returns a fixture whose environment has created its namespace.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{Cluster: environmenttest.NewCluster(t), environment: environmenttest.Environment()}
	s.environment.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
	s.remover = &teardown.Remover{
		Client: s.Metadata(), Mapper: s.Mapper(), Discovery: served{}, Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Concurrency: 4,
		Clock: clocktesting.NewFakePassiveClock(testkit.Noon),
		Kept:  func(_ *v1alpha1.Environment, why string) { s.stays = append(s.stays, why) },
	}
	s.mine("{apiVersion: v1, kind: Namespace, metadata: {name: shop-alice}}")
	return s
}

// served are the types of the cluster.
type served struct{ err error }

func (s served) ServerPreferredNamespacedResourcesWithContext(context.Context) ([]*metav1.APIResourceList, error) {
	all := metav1.Verbs{"create", "delete", "get", "list"}
	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Verbs: all},
			{Name: "events", Kind: "Event", Verbs: all},
			{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Verbs: all},
			{Name: "secrets", Kind: "Secret", Verbs: all},
			{Name: "serviceaccounts", Kind: "ServiceAccount", Verbs: all},
		}},
		{GroupVersion: "metrics.k8s.io/v1beta1", APIResources: []metav1.APIResource{
			{Name: "pods", Kind: "PodMetrics", Verbs: metav1.Verbs{"get", "list"}},
		}},
	}, s.err
}

// mine puts an object that the environment has written.
func (s *fixture) mine(text string) { s.ofEnvironment(text, string(s.environment.UID)) }

// ofEnvironment puts an object of an environment with the same name and a UID.
func (s *fixture) ofEnvironment(text, uid string) {
	s.Helper()
	o := s.object(text)
	labels := map[string]string{
		v1alpha1.LabelEnvironment: "alice", v1alpha1.LabelEnvironmentNamespace: environmenttest.Teams, v1alpha1.LabelEnvironmentUID: uid,
	}
	maps.Copy(labels, o.GetLabels())
	o.SetLabels(labels)
	s.Put(o)
}

func (s *fixture) theirs(text string) {
	s.Helper()
	s.Put(s.object(text))
}

func (s *fixture) object(text string) *unstructured.Unstructured {
	s.Helper()
	o := environmenttest.Object(s, text)
	if o.GetKind() != "Namespace" {
		o.SetNamespace(environmenttest.Target)
	}
	return o
}

func (s *fixture) remove() ([]string, error) { return s.remover.Remove(s.Context(), s.environment) }

// removes removes all objects of the environment in one call.
func (s *fixture) removes() {
	s.Helper()
	if left, err := s.remove(); err != nil || len(left) > 0 {
		s.Fatalf("left %q, %v", left, err)
	}
}

// has checks that the target exists and has exactly these objects.
func (s *fixture) has(names ...string) {
	s.Helper()
	if got := s.Names(environmenttest.Target); !slices.Equal(got, names) {
		s.Errorf("objects of the target = %q, want %q", got, names)
	}
	if s.Live("namespaces", "", environmenttest.Target) == nil {
		s.Error("namespace was deleted")
	}
}

func (s *fixture) isDeleted() {
	s.Helper()
	if s.Live("namespaces", "", environmenttest.Target) != nil {
		s.Errorf("namespace still exists, with %q", s.Names(environmenttest.Target))
	}
}

// written returns the requests that write, in order.
func (s *fixture) written() []string {
	return slices.DeleteFunc(s.TakeRequests(), func(request string) bool { return strings.HasPrefix(request, "GET ") })
}
