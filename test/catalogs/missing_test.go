// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// missing deletes a workload in production, and has it removed from the catalog.
func (s *stage) missing(t *testing.T) {
	c := s.newScene(t, "missing")
	c.newCatalog(t, "shop")
	c.remove(t, s.bob, "worker")

	record := c.recorded(t, "shop", 2)
	automatic(t, record, "worker")
	if changes := record.Status.ResourceSummaries; len(changes) != 1 || changes[0].ChangeType != v1alpha1.ChangeRemoved {
		t.Errorf("the record says %+v", changes)
	}
	c.reads(t, map[string]string{"STATE": "1 workload changed", "CHANGED": "worker", "BY": "bob"}, "ss", record.Name)
	c.reads(t, map[string]string{"STATE": "Up to date, 1 missing", "WORKLOADS": "2", "READY": "True"}, "cat", "shop")
	c.warned(t, "worker")
	if _, err := s.eve.Kubectl.Run(t.Context(), "wait", "-n", c.team, "cat/shop", "--for=condition=WorkloadsMissing", "--timeout=180s"); err != nil {
		t.Error(err)
	}
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.edit(t, "shop", "  workloads: [{kind: Deployment, name: api}]\n")
	c.reads(t, map[string]string{"STATE": "1 workload changed by eve", "CHANGED": "worker"}, "ss", c.recorded(t, "shop", 3).Name)
	c.offers(t, "shop", map[string]string{"api": "shop/api:1"})
	c.reads(t, map[string]string{"STATE": "Up to date", "WORKLOADS": "1"}, "cat", "shop")
}

// remove deletes a Deployment of production.
func (c *scene) remove(t *testing.T, by *people.Person, workload string) {
	t.Helper()
	if err := by.Client.AppsV1().Deployments(c.source).Delete(t.Context(), workload, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// has says whether production has a Deployment.
func (c *scene) has(t *testing.T, workload string) bool {
	t.Helper()
	_, err := c.ann.Client.AppsV1().Deployments(c.source).Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// warned waits for a warning about the catalog that names a workload.
func (c *scene) warned(t *testing.T, workload string) {
	t.Helper()
	mirrortest.Eventually(t, "a warning about "+workload, func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=appcatalog/shop", "--types=Warning")
		if err == nil && !strings.Contains(out, workload) {
			err = fmt.Errorf("kubectl events prints %q", out)
		}
		return err
	})
}
