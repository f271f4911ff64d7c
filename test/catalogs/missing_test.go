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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// testMissingWorkload deletes a workload in the source, and then removes it from the catalog.
func (s *testCluster) testMissingWorkload(t *testing.T) {
	c := s.newFixture(t, "missing")
	c.newCatalog(t, "shop")
	c.remove(t, s.bob, "worker")

	record := c.waitForRecords(t, "shop", 2)
	expectAutomatic(t, record, "worker")
	if changes := record.Status.ResourceSummaries; len(changes) != 1 || changes[0].ChangeType != v1alpha1.ChangeRemoved {
		t.Errorf("resourceSummaries = %+v", changes)
	}
	c.expectColumns(t, map[string]string{"STATE": "1 workload changed", "CHANGED": "worker", "BY": "bob"}, "ss", record.Name)
	c.expectColumns(t, map[string]string{"STATE": "Up to date, 1 missing", "WORKLOADS": "2", "READY": "True"}, "cat", "shop")
	c.waitForWarning(t, "worker")
	s.eve.HaveCondition(t, c.team, "WorkloadsMissing", "cat/shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.edit(t, "shop", "  workloads: [{kind: Deployment, name: api}]\n")
	c.expectColumns(t, map[string]string{"STATE": "1 workload changed by eve", "CHANGED": "worker"}, "ss", c.waitForRecords(t, "shop", 3).Name)
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1"})
	c.expectColumns(t, map[string]string{"STATE": "Up to date", "WORKLOADS": "1"}, "cat", "shop")
}

// remove deletes a Deployment of the source.
func (c *fixture) remove(t *testing.T, by *people.Person, workload string) {
	t.Helper()
	if err := by.Client.AppsV1().Deployments(c.source).Delete(t.Context(), workload, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// has reports whether the source has a Deployment.
func (c *fixture) has(t *testing.T, workload string) bool {
	t.Helper()
	_, err := c.ann.Client.AppsV1().Deployments(c.source).Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// waitForWarning waits for a warning Event about the catalog that contains a text.
func (c *fixture) waitForWarning(t *testing.T, text string) {
	t.Helper()
	mirrortest.Eventually(t, "warning Event with "+text, func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=appcatalog/shop", "--types=Warning")
		if err == nil && !strings.Contains(out, text) {
			err = fmt.Errorf("kubectl events printed %q", out)
		}
		return err
	})
}
