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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// everyKind are the objects of the production in testdata/kinds.yaml that an environment has, but for the workload that stays.
var everyKind = []string{
	"ConfigMap web", "CronJob report", "DaemonSet agent", "Deployment web", "GRPCRoute web", "Gateway web", "HTTPRoute web",
	"HorizontalPodAutoscaler web", "Ingress web", "Job import", "NetworkPolicy web", "PodDisruptionBudget web", "ReferenceGrant web",
	"ReplicaSet cache", "Secret web", "Service web", "ServiceAccount web", "StatefulSet db",
}

const (
	// staying is the workload that stays.
	staying = "Deployment stays"
	// everyWorkload is the line of a catalog that names all workloads of that production.
	everyWorkload = "workloads: [{kind: Deployment, name: web}, {kind: StatefulSet, name: db}, {kind: DaemonSet, name: agent}, " +
		"{kind: ReplicaSet, name: cache}, {kind: CronJob, name: report}, {kind: Job, name: import}, {kind: Deployment, name: stays}]"
	// everythingChanged is what an environment says when all of it is another in production.
	everythingChanged = "7 workloads, 1 ConfigMap, 1 Secret, 1 Service, 1 ServiceAccount changed"
	// claim is a volume that dave has in his environment, since copies bring none.
	claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, " +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
)

// production is what testdata/kinds.yaml has, as it is in a version, with a label or without.
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

// everyKindGoes has objects of every kind come to an environment, be changed there and in production, and go.
func (s *stage) everyKindGoes(t *testing.T) {
	s.mayRoute(t, "kinds-production", s.ann)
	s.mayRoute(t, "kinds", s.dave)
	c := s.newScene(t, "kinds", production(t, "v1", true), everyWorkload)
	c.environment(t, "alice", asSource)
	record := c.synced(t, "alice", all)
	if warnings := fmt.Sprint(record.Status.Warnings); !strings.Contains(warnings, "PersistentVolumeClaim data is not copied") {
		t.Errorf("that the volume is not copied is not among %s", warnings)
	}
	c.versioned(t, "v1", "production")

	if _, err := c.dave.Kubectl.Feed(t.Context(), claim, "apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.dave.Run(t, append(append([]string{"label", "--overwrite", "-n", c.target}, arguments(allObjects())...), "note=mine")...)
	c.changedEverywhere(t)
	c.removedEverywhere(t)
}

// allObjects are those of every kind, and the workload that stays, in order.
func allObjects() []string {
	return slices.Sorted(slices.Values(append(slices.Clone(everyKind), staying)))
}

// arguments are objects as kubectl takes them.
func arguments(names []string) (out []string) {
	for _, name := range names {
		out = append(out, strings.ReplaceAll(strings.ToLower(name), " ", "/"))
	}
	return out
}

// changedEverywhere has production change, and let go of what dave has changed.
func (c *scene) changedEverywhere(t *testing.T) {
	t.Helper()
	before := c.in(t, c.target)
	c.produce(t, production(t, "v2", false))
	c.offered(t, "alice", 2) // What dave has labelled is shown, too.
	c.says(t, "alice", everythingChanged)
	record := c.synced(t, "alice", all)
	if len(record.Status.Warnings) > 0 {
		t.Errorf("with a volume there are the warnings %q", record.Status.Warnings)
	}
	c.summarized(t, record, allObjects(), v1alpha1.ChangeChanged)
	c.versioned(t, "v2", "")
	for name, object := range c.in(t, c.target) {
		if before[name] == nil || object.GetUID() != before[name].GetUID() {
			t.Errorf("%s is another one than before", name)
		}
	}
	c.says(t, "alice", "Synced")
}

// removedEverywhere has everything go in production, and out of the catalog, but for one workload.
func (c *scene) removedEverywhere(t *testing.T) {
	t.Helper()
	c.ann.Run(t, append([]string{"delete", "-n", c.source}, arguments(everyKind)...)...)
	c.catalog(t, "shop", workloads("stays"))
	c.says(t, "alice", "6 workloads")
	record := c.synced(t, "alice", all)
	c.summarized(t, record, everyKind, v1alpha1.ChangeRemoved)
	mirrortest.Eventually(t, "everything else goes", func(context.Context) error {
		if there := c.in(t, c.target).names(); !slices.Equal(there, []string{staying}) {
			return fmt.Errorf("there are %q", there)
		}
		return nil
	})
	c.dave.Run(t, "get", "persistentvolumeclaim", "data", "-n", c.target)
	c.says(t, "alice", "Synced")
}

// unwatched has an environment with objects of every kind come and go whose workloads the server cannot watch.
func (s *stage) unwatched(t *testing.T) {
	s.mayRoute(t, "unwatched-production", s.ann)
	s.mayRoute(t, "unwatched", s.dave)
	c := s.newScene(t, "unwatched", production(t, "v1", true), everyWorkload)
	c.environment(t, "alice", asSource)
	c.synced(t, "alice", all)
	c.versioned(t, "v1", "production")
	e := c.becomes(t, "alice", "says what it does not know", func(e *v1alpha1.Environment) error {
		ready, upToDate := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady),
			apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionCatalogUpToDate)
		if !upToDate || ready == nil || ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, "the server cannot list") {
			return fmt.Errorf("of being ready it says %+v, it is up to date: %v", ready, upToDate)
		}
		return nil
	})
	if e.Status.WorkloadsReady != nil {
		t.Errorf("of workloads that cannot be watched it says %+v", e.Status.WorkloadsReady)
	}

	c.produce(t, production(t, "v2", false))
	c.says(t, "alice", everythingChanged)
	c.synced(t, "alice", all)
	c.versioned(t, "v2", "")
	c.dave.Run(t, "delete", "envt", "alice", "-n", c.team, "--timeout=180s")
	if there := c.in(t, c.target).names(); len(there) > 0 {
		t.Errorf("what the environment wrote is there still: %q", there)
	}
}

// versioned expects everything in the target, in a version and with a label.
func (c *scene) versioned(t *testing.T, version, note string) {
	t.Helper()
	objects := c.in(t, c.target)
	if diff := cmp.Diff(allObjects(), objects.names()); diff != "" {
		t.Fatalf("objects of the target: want -, got +:\n%s", diff)
	}
	for name, object := range objects {
		if got := object.GetLabels()["note"]; got != note {
			t.Errorf("%s has the label %q, want %q", name, got, note)
		}
	}
	for name, want := range map[string]string{"web": "shop/web:", "stays": "shop/stays:"} {
		if image := text(container(t, objects["Deployment "+name], "main"), "image"); image != want+version {
			t.Errorf("Deployment %s has the image %s", name, image)
		}
	}
	if got := text(objects["ConfigMap web"], "data", "version"); got != version {
		t.Errorf("the ConfigMap is of version %s", got)
	}
}

// summarized expects a record to tell that objects have been changed in a way, and of no others.
func (c *scene) summarized(t *testing.T, record *v1alpha1.SyncStatus, names []string, how v1alpha1.ChangeType) {
	t.Helper()
	var want []string
	for _, name := range names {
		want = append(want, fmt.Sprintf("%s %s", name, how))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, changed(record)); diff != "" {
		t.Errorf("the record tells: want -, got +:\n%s", diff)
	}
}
