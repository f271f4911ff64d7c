// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// asSource is the field of a spec that disables all adaptations. adapted uses the defaults for everything but the hosts of
// Ingresses.
const (
	asSource = "adapt: {replicas: AsSource, cronJobs: AsSource, loadBalancers: AsSource, ingressHosts: {type: AsSource}}"
	adapted  = "adapt: {ingressHosts: {type: Template, template: '{label}.{environment}.dev.example.com'}}"
)

// copied are the objects of testdata/production.yaml that are copied.
var copied = []string{
	"ConfigMap init-env", "ConfigMap report-env", "ConfigMap web-env", "ConfigMap web-key", "ConfigMap web-projected", "ConfigMap web-volume",
	"CronJob report", "DaemonSet agent", "Deployment web", "HorizontalPodAutoscaler web", "Ingress web", "NetworkPolicy web",
	"PodDisruptionBudget web",
	"Secret account-pull", "Secret account-secret", "Secret csi-credentials", "Secret init-secret", "Secret pod-pull",
	"Secret web-secret-env", "Secret web-secret-key", "Secret web-secret-projected", "Secret web-secret-volume", "Secret web-tls",
	"Service db", "Service edge", "Service web", "ServiceAccount web", "StatefulSet db",
}

// adaptations are the fields that differ in adapted copies, which must not act on production.
var adaptations = []string{
	`CronJob report /spec/suspend: false, copied as true`,
	`Deployment web /spec/replicas: 3, copied as 1`,
	`HorizontalPodAutoscaler web /spec/maxReplicas: 5, copied as 1`,
	`HorizontalPodAutoscaler web /spec/minReplicas: 2, copied as 1`,
	`Ingress web /spec/rules/0/host: shop.example.com, copied as shop.adapted.dev.example.com`,
	`Ingress web /spec/tls/0/hosts/0: shop.example.com, copied as shop.adapted.dev.example.com`,
	`PodDisruptionBudget web /spec/maxUnavailable: <nil>, copied as 1`,
	`PodDisruptionBudget web /spec/minAvailable: 2, copied as <nil>`,
	`Service edge /spec/allocateLoadBalancerNodePorts: true, copied as <nil>`,
	`Service edge /spec/externalTrafficPolicy: Cluster, copied as <nil>`,
	`Service edge /spec/type: LoadBalancer, copied as ClusterIP`,
	`StatefulSet db /spec/replicas: 2, copied as 1`,
}

// testCopyMatchesSource copies a whole namespace into two environments: one without adaptations, and one with the defaults.
func (s *testCluster) testCopyMatchesSource(t *testing.T) {
	production, err := os.ReadFile("testdata/production.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := s.newFixture(t, "faithful", string(production), "ignore: []",
		"workloads: [{kind: Deployment, name: web}, {kind: StatefulSet, name: db}, "+
			"{kind: DaemonSet, name: agent}, {kind: CronJob, name: report}]")
	c.setOwner(t, "deployment/web", "configmap/web-env", "secret/web-secret-env", "service/web")
	c.newTarget(t, "faithful-adapted")

	c.mustApply(t, "alike", asSource)
	c.mustApplyIn(t, "adapted", "faithful-adapted", adapted)
	record := c.mustSync(t, "alike", all)
	status := &record.Status
	if status.Actor != "dave" || status.AutoTriggered || status.Action != v1alpha1.SyncActionAll || status.Revision != 1 ||
		problems(record) != "" {
		t.Errorf("record status = %+v", status)
	}
	if status.Progress == nil || status.Progress.Done != status.Progress.Total || int(status.Progress.Total) != len(copied) {
		t.Errorf("progress %+v, want %d objects", status.Progress, len(copied))
	}
	c.mustSync(t, "adapted", all)

	source := s.objectsIn(t, c.source)
	for environment, test := range map[string]struct {
		target string
		want   []string
	}{"alike": {c.target, nil}, "adapted": {"faithful-adapted", adaptations}} {
		t.Run(environment, func(t *testing.T) {
			c.waitForApplied(t, environment, 1) // The record is completed before the environment says so.
			c.compare(t, c.get(t, environment), source, s.objectsIn(t, test.target), test.want)
		})
	}
	t.Run("second sync changes nothing", func(t *testing.T) {
		before := s.objectsIn(t, c.target)
		c.mustSync(t, "alike", all)
		s.expectUnchanged(t, c.target, before)
	})
}

// setOwner sets an owner reference on objects of the source, as GitOps tools do.
func (c *fixture) setOwner(t *testing.T, objects ...string) {
	t.Helper()
	c.applyToSource(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: application}}")
	uid := c.ann.Field(t, c.source, "configmap/application", "{.metadata.uid}")
	owner := fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"application","uid":%q}]}}`, uid)
	c.ann.Run(t, append([]string{"patch", "-n", c.source, "--type=merge", "-p", owner}, objects...)...)
}

// compare expects exactly the copied objects, without differences to the source except for the expected ones.
func (c *fixture) compare(t *testing.T, e *v1alpha1.Environment, source, target objects, want []string) {
	t.Helper()
	if diff := cmp.Diff(copied, target.names()); diff != "" {
		t.Fatalf("objects of the target: want -, got +:\n%s", diff)
	}
	var found []string
	for _, name := range copied {
		for _, difference := range differences(e, source[name], target[name]) {
			found = append(found, name+" "+difference)
		}
		if content := fmt.Sprint(withoutLabels(target[name])); strings.Contains(content, c.source) {
			t.Errorf("%s refers to the source namespace: %s", name, content)
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("differences: want -, got +:\n%s", diff)
	}
	if ip := text(target["Service db"], "spec", "clusterIP"); ip != "None" {
		t.Errorf("cluster IP of the headless Service = %s", ip)
	}
}
