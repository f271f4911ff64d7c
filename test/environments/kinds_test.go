// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// everyKind are the objects of testdata/kinds.yaml that are copied, except for the workload that is not removed later.
var everyKind = []string{
	"ConfigMap web", "CronJob report", "DaemonSet agent", "Deployment web", "GRPCRoute web", "Gateway web", "HTTPRoute web",
	"HorizontalPodAutoscaler web", "Ingress web", "Job import", "NetworkPolicy web", "PodDisruptionBudget web", "ReferenceGrant web",
	"ReplicaSet cache", "Secret web", "Service web", "ServiceAccount web", "StatefulSet db",
}

const (
	// staying is the workload that is not removed.
	staying = "Deployment stays"
	// everyWorkload is the workloads field of a catalog with all workloads of testdata/kinds.yaml.
	everyWorkload = "workloads: [{kind: Deployment, name: web}, {kind: StatefulSet, name: db}, {kind: DaemonSet, name: agent}, " +
		"{kind: ReplicaSet, name: cache}, {kind: CronJob, name: report}, {kind: Job, name: import}, {kind: Deployment, name: stays}]"
	// everythingChanged is the state of an environment when all objects of the source have changed.
	everythingChanged = "7 workloads, 1 ConfigMap, 1 Secret, 1 Service, 1 ServiceAccount changed"
	// claim is a PersistentVolumeClaim of the user, because claims are not copied.
	claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, " +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
)

// production returns testdata/kinds.yaml for a version, with or without a label.
func production(t *testing.T, version string, labelled bool) string {
	t.Helper()
	content, err := os.ReadFile("testdata/kinds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := strings.ReplaceAll(string(content), "VERSION", version)
	if !labelled {
		manifests = strings.ReplaceAll(manifests, ", labels: {note: production}", "")
	}
	return manifests
}

// testAllKinds creates, changes and removes objects of every kind.
func (s *testCluster) testAllKinds(t *testing.T) {
	s.allowGatewayAPI(t, "kinds-production", s.ann)
	s.allowGatewayAPI(t, "kinds", s.dave)
	c := s.newFixture(t, "kinds", production(t, "v1", true), everyWorkload)
	c.mustApply(t, "alice", asSource)
	record := c.mustSync(t, "alice", all)
	if warnings := fmt.Sprint(record.Status.Warnings); !strings.Contains(warnings, "PersistentVolumeClaim data is not copied") {
		t.Errorf("warnings lack the PersistentVolumeClaim: %s", warnings)
	}
	c.expectVersion(t, "v1", "production")

	if _, err := c.dave.Kubectl.Feed(t.Context(), claim, "apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.dave.Run(t, append(append([]string{"label", "--overwrite", "-n", c.target}, arguments(allObjects())...), "note=mine")...)
	c.testChangeAllKinds(t)
	c.testRemoveAllKinds(t)
}

// allObjects returns the names of all copied objects in order.
func allObjects() []string {
	return slices.Sorted(slices.Values(append(slices.Clone(everyKind), staying)))
}

// arguments returns the names of objects as arguments of kubectl.
func arguments(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strings.ReplaceAll(strings.ToLower(name), " ", "/"))
	}
	return out
}

// testChangeAllKinds changes all objects in the source and removes the label that the user has changed.
func (c *fixture) testChangeAllKinds(t *testing.T) {
	t.Helper()
	before := c.objectsIn(t, c.target)
	c.applyToSource(t, production(t, "v2", false))
	// The labels that dave has changed count as changes, too. The Job changes only its label.
	c.waitForWorkloads(t, "alice", func(manifest string) bool { return !strings.Contains(manifest, `"note":"production"`) })
	c.waitForStatus(t, "alice", everythingChanged)
	record := c.mustSync(t, "alice", all)
	if len(record.Status.Warnings) > 0 {
		t.Errorf("warnings with the claim: %q", record.Status.Warnings)
	}
	c.expectSummaries(t, record, allObjects(), v1alpha1.ChangeChanged)
	c.expectVersion(t, "v2", "")
	for name, object := range c.objectsIn(t, c.target) {
		if before[name] == nil || object.GetUID() != before[name].GetUID() {
			t.Errorf("%s was recreated", name)
		}
	}
	c.waitForStatus(t, "alice", "Synced")
}

// testRemoveAllKinds removes all objects but one workload from the source and from the catalog.
func (c *fixture) testRemoveAllKinds(t *testing.T) {
	t.Helper()
	c.ann.Run(t, append([]string{"delete", "-n", c.source}, arguments(everyKind)...)...)
	c.applyCatalog(t, "shop", workloads("stays"))
	c.waitForStatus(t, "alice", "6 workloads")
	record := c.mustSync(t, "alice", all)
	c.expectSummaries(t, record, everyKind, v1alpha1.ChangeRemoved)
	mirrortest.Eventually(t, "the other objects are deleted", func(context.Context) error {
		if left := c.objectsIn(t, c.target).names(); !slices.Equal(left, []string{staying}) {
			return fmt.Errorf("objects: %q", left)
		}
		return nil
	})
	c.dave.Run(t, "get", "persistentvolumeclaim", "data", "-n", c.target)
	c.waitForStatus(t, "alice", "Synced")
}

// testUnwatchedWorkloads tests all kinds with a server that cannot watch workloads.
func (s *testCluster) testUnwatchedWorkloads(t *testing.T) {
	s.allowGatewayAPI(t, "unwatched-production", s.ann)
	s.allowGatewayAPI(t, "unwatched", s.dave)
	c := s.newFixture(t, "unwatched", production(t, "v1", true), everyWorkload)
	c.mustApply(t, "alice", asSource)
	c.mustSync(t, "alice", all)
	c.expectVersion(t, "v1", "production")
	e := c.waitFor(t, "alice", "reports that readiness is unknown", func(e *v1alpha1.Environment) error {
		ready, upToDate := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady),
			apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
		if !upToDate || ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "the server cannot list") {
			return fmt.Errorf("condition Ready = %+v, up to date: %v", ready, upToDate)
		}
		return nil
	})
	if e.Status.WorkloadsReady != nil {
		t.Errorf("workloadsReady = %+v, want nil", e.Status.WorkloadsReady)
	}

	c.applyToSource(t, production(t, "v2", false))
	c.waitForStatus(t, "alice", everythingChanged)
	c.mustSync(t, "alice", all)
	c.expectVersion(t, "v2", "")
	c.dave.Delete(t, c.team, "envt/alice")
	if left := c.objectsIn(t, c.target).names(); len(left) > 0 {
		t.Errorf("objects left after the deletion of the environment: %q", left)
	}
}

// expectVersion expects all objects in the target, with a version and a label.
func (c *fixture) expectVersion(t *testing.T, version, note string) {
	t.Helper()
	objects := c.objectsIn(t, c.target)
	if diff := cmp.Diff(allObjects(), objects.names()); diff != "" {
		t.Fatalf("objects of the target: want -, got +:\n%s", diff)
	}
	for name, object := range objects {
		if got := object.GetLabels()["note"]; got != note {
			t.Errorf("label of %s = %q, want %q", name, got, note)
		}
	}
	for name, want := range map[string]string{"web": "shop/web:", "stays": "shop/stays:"} {
		if image := text(container(t, objects["Deployment "+name], "main"), "image"); image != want+version {
			t.Errorf("image of Deployment %s = %s", name, image)
		}
	}
	if got := text(objects["ConfigMap web"], "data", "version"); got != version {
		t.Errorf("version of the ConfigMap = %s", got)
	}
}

// expectSummaries expects a record to list exactly these objects with a change type.
func (c *fixture) expectSummaries(t *testing.T, record *v1alpha1.SyncStatus, names []string, changeType v1alpha1.ChangeType) {
	t.Helper()
	var want []string
	for _, name := range names {
		want = append(want, fmt.Sprintf("%s %s", name, changeType))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, changed(record)); diff != "" {
		t.Errorf("changes of the record: want -, got +:\n%s", diff)
	}
}
