// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// mine is an object of the user in the target.
const mine = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {note: keep}}
`

// feature is a patch that adds a field to a workload.
const feature = `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"FEATURE","value":"on"}]}]}}}}`

// testManualSync changes the source before a sync is requested.
func (s *testCluster) testManualSync(t *testing.T) {
	c := s.newFixture(t, "manual", shop, workloads("api", "worker"))
	c.mustApply(t, "alice")
	c.waitForStatus(t, "alice", "Not synced yet")
	c.mustSync(t, "alice", all)
	c.waitForStatus(t, "alice", "Synced")
	c.addUserChanges(t)
	seen := c.get(t, "alice")

	before := s.objectsIn(t, c.target)
	c.expectPlugin(t, c.dave, 0, []string{"^No difference, "}, "diff", "environment/alice")
	waitForLine := c.followStatus(t)
	waitForLine("environment/alice +Synced")
	c.setImage(t, "api", "shop/api:2")
	offered := c.waitForRevision(t, "alice", 2)
	c.waitForStatus(t, "alice", "1 workload changed")
	waitForLine("^environment/alice +1 workload changed +r1->r2 +no +you$")
	c.expectPromptInPlugin(t)
	s.expectUnchanged(t, c.target, before)
	if known := c.recordNames(t, "alice", v1alpha1.SyncTypeEnvironment); len(known) != 1 {
		t.Errorf("records without a request: %q", known)
	}

	c.expectRefused(t, s.dave, "environments/alice/sync", expectedCatalogSync(seen), "Conflict", offered.Status.LatestCatalogSync,
		"1 workload changed")
	s.expectUnchanged(t, c.target, before)
	record := c.mustSync(t, "alice", expectedCatalogSync(offered))
	c.waitForSyncTimes(t, "alice", record)
	if by := record.Status.ChangedBy; len(by) != 1 || by[0].Username != "ann" || by[0].Signal != v1alpha1.SignalAudit {
		t.Errorf("changedBy = %+v, want ann by audit", by)
	}
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.expectUserChanges(t)

	c.applyToSource(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: extra}, spec: {selector: {matchLabels: {app: extra}},
  template: {metadata: {labels: {app: extra}}, spec: {containers: [{name: main, image: 'shop/extra:1'}]}}}}`)
	c.applyCatalog(t, "shop", workloads("api", "extra"))
	c.waitForStatus(t, "alice", "2 workloads changed")
	c.mustSync(t, "alice", all)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "extra": "shop/extra:1"})
	c.waitForDeletion(t, c.target, "Deployment worker")
	c.waitForDeletion(t, c.target, "ConfigMap jobs")
	c.expectUserChanges(t)
	c.waitForStatus(t, "alice", "Synced")
	c.testAutoscalerAdded(t)
}

// testAutoscalerAdded adds an autoscaler to a workload of the source.
func (c *fixture) testAutoscalerAdded(t *testing.T) {
	t.Helper()
	c.applyToSource(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: api},
  spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}}}`)
	c.waitForStatus(t, "alice", "1 HorizontalPodAutoscaler changed")
	c.mustSync(t, "alice", all)
	c.waitForStatus(t, "alice", "Synced")
}

// expectedCatalogSync returns a request that expects the offered state of an environment.
func expectedCatalogSync(seen *v1alpha1.Environment) string {
	return fmt.Sprintf(`{"spec":{"expectedCatalogSync":%q}}`, seen.Status.LatestCatalogSync)
}

// addUserChanges adds objects and fields of the user to the target.
func (c *fixture) addUserChanges(t *testing.T) {
	t.Helper()
	if _, err := c.dave.Kubectl.Feed(t.Context(), mine, "apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	patch(t, c.dave, c.target, "api", feature)
	c.dave.Run(t, "annotate", "-n", c.target, "configmap/settings", "dave.example.com/note=keep")
}

// expectUserChanges expects the objects and fields of the user to be preserved.
func (c *fixture) expectUserChanges(t *testing.T) {
	t.Helper()
	objects := c.objectsIn(t, c.target)
	if note := text(objects["ConfigMap mine"], "data", "note"); note != "keep" {
		t.Errorf("note of the user's ConfigMap = %q", note)
	}
	if env := text(container(t, objects["Deployment api"], "main"), "env"); env != "[map[name:FEATURE value:on]]" {
		t.Errorf("variables of the user = %s", env)
	}
	if note := text(objects["ConfigMap settings"], "metadata", "annotations", "dave.example.com/note"); note != "keep" {
		t.Errorf("annotation of the user = %q", note)
	}
}

// expectImages expects exactly these Deployments with their images in the target.
func (c *fixture) expectImages(t *testing.T, want map[string]string) {
	t.Helper()
	list, err := c.dave.Client.AppsV1().Deployments(c.target).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, deployment := range list.Items {
		if deployment.DeletionTimestamp == nil {
			got[deployment.Name] = deployment.Spec.Template.Spec.Containers[0].Image
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("images of %s = %v, want %v", c.target, got, want)
	}
}

// waitForSyncTimes waits until an environment reports catalog and dependencies as synced by a run of dave.
func (c *fixture) waitForSyncTimes(t *testing.T, environment string, record *v1alpha1.SyncStatus) {
	t.Helper()
	if record.Status.Actor != "dave" {
		t.Errorf("actor of the run = %q", record.Status.Actor)
	}
	c.waitFor(t, environment, "has both sync times", func(e *v1alpha1.Environment) error {
		catalog, dependencies := e.Status.LastCatalogSyncedAt, e.Status.LastDependencySyncedAt
		if catalog == nil || dependencies == nil || catalog.Before(record.Status.StartedAt) || dependencies.Before(record.Status.StartedAt) ||
			e.Status.AppliedCatalogSync != e.Status.LatestCatalogSync || e.Status.AppliedRevision != record.Status.Revision {
			return fmt.Errorf("%v and %v, revision %d of %s", catalog, dependencies, e.Status.AppliedRevision, e.Status.AppliedCatalogSync)
		}
		return nil
	})
}
