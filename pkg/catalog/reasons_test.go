// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// twoCatalogs returns a fixture whose catalogs shop and work have their first revisions.
func twoCatalogs(t *testing.T, shop *v1alpha1.AppCatalog, changes ...func(*fixture)) *fixture {
	t.Helper()
	s := newFixture(t, shop, appCatalog("work", "worker", "api"))
	for _, change := range changes {
		change(s)
	}
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForRevision("work", 1)
	s.waitForWatches()
	s.stepWindow()
	return s
}

// TestPatchesThatStopApplying crashes a process after it has written the record of a change to which the patch no longer applies
// afterwards. Only the catalog of the patch is blocked.
func TestPatchesThatStopApplying(t *testing.T) {
	paused := with(true, "spec", "paused")
	shop := appCatalog("shop", "api")
	shop.Spec.Patches = []v1alpha1.Patch{failingPatch}
	s := twoCatalogs(t, shop, func(s *fixture) { s.put("api", "shop/api:1", paused) })
	s.stop()
	s.put("api", "shop/api:2", paused)
	ended := s.start(2)
	s.eventually("the process crashes", func() error {
		select {
		case <-ended:
			return nil
		default:
			return errors.New("process is still running")
		}
	})
	s.stop()
	s.put("api", "shop/api:3")
	s.start(0)
	s.waitForRevision("work", 2)
	s.put("worker", "shop/worker:2")
	s.waitForRevision("work", 3)
	if got := s.images("work"); !maps.Equal(got, map[string]string{"api": "shop/api:3", "worker": "shop/worker:2"}) {
		t.Errorf("offered images of the other catalog = %v", got)
	}
	s.waitForImages(map[string]string{"api": "shop/api:1"})
	s.eventually("the catalog reports why it is blocked", func() error {
		ready := meta.FindStatusCondition(s.catalog("shop").Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != v1alpha1.ReasonPatchFailed || !strings.Contains(ready.Message, "patches[0]") {
			return fmt.Errorf("%+v", ready)
		}
		return nil
	})
	s.put("api", "shop/api:4", paused)
	s.waitForRevision("shop", 2)
	s.waitForImages(map[string]string{"api": "shop/api:4"})
	s.eventually("the catalog is ready", func() error {
		if conditions := s.catalog("shop").Status.Conditions; !meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("%+v", conditions)
		}
		return nil
	})
}

// TestCatalogsThatCannotBeReadDelayNoOther has a catalog whose CatalogWorkloads cannot be read during some batches.
func TestCatalogsThatCannotBeReadDelayNoOther(t *testing.T) {
	broken := &atomic.Bool{}
	s := twoCatalogs(t, appCatalog("shop", "api"), func(s *fixture) {
		s.api.Client.PrependReactor("list", "catalogworkloads", func(action clienttesting.Action) (bool, runtime.Object, error) {
			selector := action.(clienttesting.ListAction).GetListRestrictions().Labels.String()
			if broken.Load() && strings.Contains(selector, "shop") {
				return true, nil, errors.New("a row cannot be read")
			}
			return false, nil, nil
		})
	})
	broken.Store(true)
	for i := range 3 {
		s.put("api", fmt.Sprintf("shop/api:%d", i+2))
		s.waitForRevision("work", int64(i+2))
	}
	s.edit("work", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Workloads = catalog.Spec.Workloads[1:] })
	s.waitForRevision("work", 5)
	s.waitForImages(map[string]string{"api": "shop/api:1"})
	broken.Store(false)
	s.waitForRevision("shop", 2)
	s.waitForImages(map[string]string{"api": "shop/api:4"})
}
