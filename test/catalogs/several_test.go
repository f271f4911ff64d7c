// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// together has two catalogs follow one namespace, one of them a part of it.
func (s *stage) together(t *testing.T) {
	c := s.newScene(t, "together")
	c.newCatalog(t, "shop")
	c.edit(t, "back-office", "  workloads: [{kind: Deployment, name: worker}]\n")
	c.recorded(t, "back-office", 1)

	c.setImage(t, s.ann, "worker", "shop/worker:2")
	automatic(t, c.recorded(t, "shop", 2), "worker")
	automatic(t, c.recorded(t, "back-office", 2), "worker")
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
	c.offers(t, "back-office", map[string]string{"worker": "shop/worker:2"})
	c.onlyTheNext(t, "shop", 2)
	c.recorded(t, "back-office", 2)
}

// deletionWindow is long enough for a catalog to go before it ends.
const deletionWindow = 5 * time.Second

// deleted lets a catalog go that has changes waiting to be recorded, and comes back.
func (s *stage) deleted(t *testing.T) {
	c := s.newScene(t, "deleted")
	s.gather(t, deletionWindow)
	defer s.gather(t, shortWindow)
	c.newCatalog(t, "shop")
	c.newCatalog(t, "doomed")
	c.setImage(t, s.ann, "api", "shop/api:2")
	if _, err := s.eve.Kubectl.Run(t.Context(), "delete", "cat", "doomed", "-n", c.team); err != nil {
		t.Fatal(err)
	}
	automatic(t, c.recorded(t, "shop", 2), "api")
	mirrortest.Eventually(t, "the content of the catalog goes with it", func(ctx context.Context) error {
		list := &v1alpha1.CatalogWorkloadList{}
		err := c.get(ctx, list, "cw", "-l", v1alpha1.LabelCatalog+"=doomed")
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
	if records, err := c.records(t.Context(), "doomed"); err != nil || len(records) == 0 {
		t.Errorf("the records of the catalog are gone with it: %v", err)
	}
	c.onlyTheNext(t, "shop", 2)
	s.Run(t, "delete", "namespace", c.team, "--timeout=180s")
}
