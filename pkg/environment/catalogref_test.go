// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const otherCatalogUID types.UID = "33333333-3333-3333-3333-333333333333"

// replaceCatalog replaces the catalog with another one, which offers the same workloads with other images.
func (s *fixture) replaceCatalog() {
	s.Helper()
	s.catalog.UID, s.catalog.CreationTimestamp = otherCatalogUID, metav1.NewTime(s.clock.Now())
	s.catalog.Status.History = nil
	s.offer(1, image(web, "evil"), worker)
}

// TestReplacedCatalog checks that nothing is synced automatically from another catalog of the same name, until a user requests it.
func TestReplacedCatalog(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.pass(60)
	s.replaceCatalog()
	s.held(v1alpha1.ReasonCatalogReplaced)
	s.pass(60)
	s.has("web:1 worker:1")
	e := s.environment("alice")
	if message := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionHeld).Message; !strings.Contains(message, "teams/shop") ||
		!strings.Contains(message, "request a sync of everything") {
		t.Error(message)
	}
	if e.Status.CatalogUID == otherCatalogUID || e.Status.ChangedWorkloadCount != 1 {
		t.Errorf("follows %s, %d changed", e.Status.CatalogUID, e.Status.ChangedWorkloadCount)
	}
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.reaches("the other catalog", func(e *v1alpha1.Environment) bool {
		return e.Status.CatalogUID == otherCatalogUID && len(e.Status.PendingRequests) == 0
	})
	s.has("web:evil worker:1")
	s.held("")
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.has("web:2 worker:1")
}

// TestSyncsThatChooseNoCatalog checks that an environment does not follow another catalog of the same name because of a rollback to what it
// had before, or of a sync of one workload.
func TestSyncsThatChooseNoCatalog(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	s.pass(60)
	s.replaceCatalog()
	s.held(v1alpha1.ReasonCatalogReplaced)
	s.pass(60)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.applied(1)
	s.has("web:1 worker:1")
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = nil }, pinField)
	s.held(v1alpha1.ReasonCatalogReplaced)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "worker"}}})
	s.reaches("the request is over", func(e *v1alpha1.Environment) bool { return len(e.Status.PendingRequests) == 0 })
	s.pass(60)
	s.has("web:1 worker:1")
	if uid := s.environment("alice").Status.CatalogUID; uid == otherCatalogUID {
		t.Error("the environment follows the other catalog")
	}
}

// TestFirstCatalog checks that an environment follows the catalog that is created after it.
func TestFirstCatalog(t *testing.T) {
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Status.CatalogUID = "" })
	s.start(0)
	s.applied(1)
	if uid := s.environment("alice").Status.CatalogUID; uid != s.catalog.UID {
		t.Errorf("follows %q", uid)
	}
}
