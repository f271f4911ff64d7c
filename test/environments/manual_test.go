// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// mine are what dave has in the environment for himself.
const mine = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: mine}, data: {note: keep}}
`

// feature is a field that dave adds to a workload.
const feature = `{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"FEATURE","value":"on"}]}]}}}}`

// manual has production change while nobody asks for it, and then dave ask.
func (s *stage) manual(t *testing.T) {
	c := s.newScene(t, "manual", shop, workloads("api", "worker"))
	c.environment(t, "alice")
	c.says(t, "alice", "Not synced yet")
	c.synced(t, "alice", all)
	c.says(t, "alice", "Synced")
	c.addOwn(t)
	seen := c.get(t, "alice")

	before := s.in(t, c.target)
	c.setImage(t, "api", "shop/api:2")
	offered := c.offered(t, "alice", 2)
	c.says(t, "alice", "1 workload changed")
	s.unmoved(t, c.target, before)
	if known := c.known(t, "alice", v1alpha1.SyncTypeEnvironment); len(known) != 1 {
		t.Errorf("nobody has asked, and there are the records %q", known)
	}

	c.refused(t, s.dave, "environments/alice/sync", expecting(seen), "Conflict", offered.Status.LatestCatalogSync, "1 workload changed")
	s.unmoved(t, c.target, before)
	record := c.synced(t, "alice", expecting(offered))
	c.bothAt(t, "alice", record)
	if by := record.Status.ChangedBy; len(by) != 1 || by[0].Username != "ann" || by[0].Signal != v1alpha1.SignalAudit {
		t.Errorf("what the run has brought was changed by %+v", by)
	}
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.expectOwn(t)

	c.produce(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: extra}, spec: {selector: {matchLabels: {app: extra}},
  template: {metadata: {labels: {app: extra}}, spec: {containers: [{name: main, image: 'shop/extra:1'}]}}}}`)
	c.catalog(t, "shop", workloads("api", "extra"))
	c.says(t, "alice", "2 workloads changed")
	c.synced(t, "alice", all)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "extra": "shop/extra:1"})
	c.gone(t, c.target, "Deployment worker")
	c.gone(t, c.target, "ConfigMap jobs")
	c.expectOwn(t)
	c.says(t, "alice", "Synced")
	c.accompanied(t)
}

// accompanied has production get an autoscaler for a workload, which is prompted for like the rest.
func (c *scene) accompanied(t *testing.T) {
	t.Helper()
	c.produce(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: api},
  spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}}}`)
	c.says(t, "alice", "1 HorizontalPodAutoscaler changed")
	c.synced(t, "alice", all)
	c.says(t, "alice", "Synced")
}

// expecting asks for what an environment has shown.
func expecting(seen *v1alpha1.Environment) string {
	return fmt.Sprintf(`{"spec":{"expectedCatalogSync":%q}}`, seen.Status.LatestCatalogSync)
}

// addOwn has dave make something of his own, and add something to what the environment has.
func (c *scene) addOwn(t *testing.T) {
	t.Helper()
	if _, err := c.dave.Kubectl.Feed(t.Context(), mine, "apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	patch(t, c.dave, c.target, "api", feature)
	c.dave.Run(t, "annotate", "-n", c.target, "configmap/settings", "dave.example.com/note=keep")
}

// expectOwn expects what dave has added to be there.
func (c *scene) expectOwn(t *testing.T) {
	t.Helper()
	objects := c.in(t, c.target)
	if note := text(objects["ConfigMap mine"], "data", "note"); note != "keep" {
		t.Errorf("the developer's ConfigMap says %q", note)
	}
	if env := text(container(t, objects["Deployment api"], "main"), "env"); env != "[map[name:FEATURE value:on]]" {
		t.Errorf("the developer's variable is %s", env)
	}
	if note := text(objects["ConfigMap settings"], "metadata", "annotations", "dave.example.com/note"); note != "keep" {
		t.Errorf("the developer's annotation is %q", note)
	}
}

// expectImages expects the Deployments of the target, and their images.
func (c *scene) expectImages(t *testing.T, want map[string]string) {
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
		t.Errorf("%s has %v, want %v", c.target, got, want)
	}
}

// bothAt waits until an environment says that both halves were synced by a run, which dave has asked for.
func (c *scene) bothAt(t *testing.T, environment string, record *v1alpha1.SyncStatus) {
	t.Helper()
	if record.Status.Actor != "dave" {
		t.Errorf("the run is by %q", record.Status.Actor)
	}
	c.becomes(t, environment, "has both times", func(e *v1alpha1.Environment) error {
		catalog, dependencies := e.Status.LastCatalogSyncedAt, e.Status.LastDependencySyncedAt
		if catalog == nil || dependencies == nil || catalog.Before(record.Status.StartedAt) || dependencies.Before(record.Status.StartedAt) ||
			e.Status.AppliedCatalogSync != e.Status.LatestCatalogSync || e.Status.AppliedRevision != record.Status.Revision {
			return fmt.Errorf("%v and %v, revision %d of %s", catalog, dependencies, e.Status.AppliedRevision, e.Status.AppliedCatalogSync)
		}
		return nil
	})
}
