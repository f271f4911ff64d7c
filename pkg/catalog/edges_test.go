// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// waitForSourceReason waits for a reason of the condition SourceReachable of the catalog shop.
func (s *fixture) waitForSourceReason(want string) {
	s.Helper()
	s.eventually("the condition SourceReachable", func() error {
		catalog := s.catalog("shop")
		reachable := meta.FindStatusCondition(catalog.Status.Conditions, v1alpha1.ConditionSourceReachable)
		if reachable == nil || reachable.Reason != want || specChanged(catalog) {
			return fmt.Errorf("generation %d: %+v", catalog.Status.ObservedGeneration, reachable)
		}
		return nil
	})
}

func TestSourcesThatDoNotExist(t *testing.T) {
	shop := appCatalog("shop", "api")
	shop.Spec.SourceNamespace = "staging"
	s := newFixture(t, shop)
	s.start(0)
	s.waitForSourceReason(v1alpha1.ReasonSourceNotFound)
	s.stepWindow()
	s.expectRecords()
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if err := s.meta.Tracker().Create(namespaces, namespace("staging"), ""); err != nil {
		t.Fatal(err)
	}
	s.waitForSourceReason(v1alpha1.ReasonSourceFollowed)
	s.putIn("staging")
	s.waitForRevision("shop", 1)
	s.expectRecords("shop 1 AutoApplied Added api (1)")
}

func TestServerNamespaceIsNoSource(t *testing.T) {
	shop := appCatalog("shop", "api")
	shop.Spec.SourceNamespace = "slipstream-system"
	s := newFixture(t, shop)
	s.putIn("slipstream-system")
	s.start(0)
	s.waitForSourceReason(v1alpha1.ReasonSourceIsServer)
	s.stepWindow()
	s.expectRecords()
	if !stalled(s.catalog("shop")) {
		t.Errorf("conditions = %+v", s.catalog("shop").Status.Conditions)
	}
	for _, action := range s.source.Actions() {
		if action.GetVerb() == "watch" {
			t.Errorf("namespace is watched: %v", action)
		}
	}
}

// TestTargetsAreNoSources has an environment that was created before the catalog, and one that was created after it.
func TestTargetsAreNoSources(t *testing.T) {
	shop := appCatalog("shop", "api")
	shop.Spec.SourceNamespace = "dev"
	shop.CreationTimestamp = metav1.NewTime(noon)
	builder := &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice", CreationTimestamp: metav1.NewTime(noon.Add(-time.Second))},
		Spec:       v1alpha1.EnvironmentSpec{TargetNamespace: "dev"},
	}
	later := builder.DeepCopy()
	later.Name, later.Spec.TargetNamespace, later.CreationTimestamp = "late", "production", metav1.NewTime(noon.Add(time.Second))
	other := appCatalog("other", "api")
	other.CreationTimestamp = metav1.NewTime(noon)
	s := newFixture(t, shop, other, builder, later)
	if err := s.meta.Tracker().Add(namespace("dev")); err != nil {
		t.Fatal(err)
	}
	s.putIn("dev")
	s.start(0)
	s.waitForSourceReason(v1alpha1.ReasonSourceIsTarget)
	s.waitForRevision("other", 1)
	s.stepWindow()
	s.expectRecords("other 1 Applied by eve Added api (1)")
	reachable := meta.FindStatusCondition(s.catalog("shop").Status.Conditions, v1alpha1.ConditionSourceReachable)
	if message := reachable.Message; !strings.Contains(message, "is the target of Environment teams/alice") {
		t.Errorf("message = %q", message)
	}
	fakeapi.Delete[*v1alpha1.Environment](s.api, "teams", "alice")
	s.waitForSourceReason(v1alpha1.ReasonSourceFollowed)
	s.waitForRevision("shop", 1)
}

// putIn creates the Deployment api in another namespace than production.
func (s *fixture) putIn(namespace string) {
	s.Helper()
	object := deployment("api", "shop/api:1")
	object.SetNamespace(namespace)
	if err := s.source.Tracker().Create(deployments, object, namespace); err != nil {
		s.Fatal(err)
	}
}

// ofSize sets annotations of a size in KiB.
func ofSize(kibibytes int, letter string) func(*unstructured.Unstructured) {
	return annotated("example.com/note", strings.Repeat(letter, kibibytes<<10))
}

// padding returns a patch that adds a number of KiB.
func padding(kibibytes int) v1alpha1.Patch {
	return patchOf("api", fmt.Sprintf(`{"metadata":{"annotations":{"example.com/pad":%q}}}`, strings.Repeat("p", kibibytes<<10)))
}

// TestLargeWorkloads has workloads whose captured or rendered manifest is larger than a record can have.
func TestLargeWorkloads(t *testing.T) {
	for name, test := range map[string]struct {
		source  int
		patches []v1alpha1.Patch
	}{
		"of more than 1 MiB":              {source: 1200},
		"of slightly more than the limit": {source: 513},
		"with a patch that is too large":  {source: 500, patches: []v1alpha1.Patch{padding(20)}},
	} {
		t.Run(name, func(t *testing.T) {
			shop := appCatalog("shop", "api", "worker")
			shop.Spec.Patches = test.patches
			s := newFixture(t, shop)
			s.put("api", "shop/api:1", ofSize(test.source, "a"))
			s.start(0)
			s.waitForRevision("shop", 1)
			s.waitForWatches()
			s.stepWindow()
			s.expectRecords(firstRecord)
			before := s.workload("api")
			if before.Manifest != nil || before.Rendered != nil || before.Hash == "" || before.Source.Hash == "" {
				t.Errorf("hash of the record = %q, has a manifest: %t", before.Hash, before.Manifest != nil)
			}
			s.put("api", "shop/api:1", ofSize(test.source, "b"))
			s.waitForRevision("shop", 2)
			s.stop()
			s.start(0)
			s.waitForWatches()
			s.stepWindow()
			s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)")
			if s.workload("api").Hash == before.Hash {
				t.Error("hash is unchanged")
			}

			s.edit("shop", "adam", pin(1))
			why := s.waitForState(v1alpha1.SyncStateManualIntervention).Status.Error
			if why.Reason != v1alpha1.ReasonRevisionNotKept || !strings.Contains(why.Message, `Deployment "api"`) ||
				!strings.Contains(why.Message, "524288 bytes") {
				t.Errorf("failure = %+v", why)
			}
			if revision := s.catalog("shop").Status.Revision; revision != 2 {
				t.Errorf("revision = %d", revision)
			}
		})
	}
}

// TestRollbackWithAnUnchangedLargeWorkload rolls back to a revision in which a large workload was the same.
func TestRollbackWithAnUnchangedLargeWorkload(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"))
	s.put("api", "shop/api:1", ofSize(600, "a"))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.put("worker", "shop/worker:2")
	s.waitForRevision("shop", 2)
	s.edit("shop", "adam", pin(1))
	s.waitForRevision("shop", 3)
	s.waitForImages(map[string]string{"worker": "shop/worker:1"})
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed worker (1)", "shop 3 Applied by adam Changed worker (1)")
}

func TestPlansWithTooManyWorkloads(t *testing.T) {
	w := newSimulation(t)
	w.catalog.Spec.WorkloadSelector = &metav1.LabelSelector{}
	for i := range 1000 {
		w.put(fmt.Sprintf("w%d", i), "shop/w:1")
	}
	_, err := newPlan(w.planInput(t))
	why := asStalling(err)
	if why == nil || why.reason != v1alpha1.ReasonRecordRefused || !strings.Contains(err.Error(), "1002 workloads are selected") {
		t.Errorf("error = %v", err)
	}
}
