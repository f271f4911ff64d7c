// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testForeignObjects syncs to a target with an object of the user that has the name of a copy.
func (s *testCluster) testForeignObjects(t *testing.T) {
	c := s.newFixture(t, "foreign", shop, workloads("api", "worker"))
	if _, err := s.dave.Kubectl.Feed(t.Context(),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: dave, own: mine}}",
		"apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	before := s.object(t, c.target, "ConfigMap settings")
	c.mustApply(t, "alice")
	record := c.waitForState(t, c.sync(t, "alice", all), v1alpha1.SyncStateManualIntervention)
	if failures := record.Status.Failures; len(failures) != 1 || failures[0].Reason != v1alpha1.ReasonNotOurs ||
		failures[0].Name != "settings" ||
		failures[0].Type != "ConfigMap" || failures[0].Namespace != c.target {
		t.Errorf("failures = %+v", failures)
	}
	c.waitForStatus(t, "alice", "Failed: ")
	after := s.object(t, c.target, "ConfigMap settings")
	if after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("ConfigMap of the user was changed: %v", after.Object)
	}

	c.mustSync(t, "alice", `{"spec":{"force":true}}`)
	after = s.object(t, c.target, "ConfigMap settings")
	if after.GetUID() != before.GetUID() || text(after, "data", "level") != "info" || after.GetLabels()[v1alpha1.LabelEnvironment] != "alice" {
		t.Errorf("ConfigMap after a sync with force: %v", after.Object)
	}
	c.waitForStatus(t, "alice", "Synced")
}

// policy rejects Deployments named worker in the target namespace.
const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-worker}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]}
  validations:
  - {expression: "object.metadata.name != 'worker'", message: workers are not allowed here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-worker}
spec:
  policyName: no-worker
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: governed}}}
`

// quota allows no Services in a namespace.
const quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: services, namespace: limited}, spec: {hard: {services: '0'}}}"

// testRefusedObjects has a policy and a quota reject one object of a sync.
func (s *testCluster) testRefusedObjects(t *testing.T) {
	c := s.newFixture(t, "governed", shop, workloads("api", "worker"))
	c.Apply(t, policy)
	mirrortest.Eventually(t, "the policy is effective", func(ctx context.Context) error {
		_, err := s.admin.Kubectl.Feed(ctx, worker, "apply", "--dry-run=server", "-n", c.target, "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "not allowed here") {
			return fmt.Errorf("worker was not rejected: %w", err)
		}
		return nil
	})
	c.newTarget(t, "limited")
	c.Apply(t, quota)
	c.HasField(t, "limited", "resourcequota/services", "{.status.hard.services}", "0")
	for _, test := range []struct{ environment, target, kind, name, why string }{
		{"alice", c.target, "Deployment", "worker", "workers are not allowed here"},
		{"bob", "limited", "Service", "api", "exceeded quota: services"},
	} {
		c.mustApplyIn(t, test.environment, test.target)
		record := c.waitForState(t, c.sync(t, test.environment, all), v1alpha1.SyncStateManualIntervention)
		failures := record.Status.Failures
		if len(failures) != 1 || failures[0].Type != test.kind || failures[0].Name != test.name || failures[0].Reason != v1alpha1.ReasonRefused ||
			!strings.Contains(failures[0].Message, test.why) {
			t.Errorf("failures of %s = %+v", test.environment, failures)
		}
		if found := s.objectsIn(t, test.target).names(); len(found) > 0 {
			t.Errorf("%q were written to %s", found, test.target)
		}
		c.waitForStatus(t, test.environment, "Failed: ")
	}
	c.Delete(t, "limited", "resourcequota/services")
	c.mustSync(t, "bob", all)
	if !slices.Contains(s.objectsIn(t, "limited").names(), "Service api") {
		t.Error("Service was not created after the quota was deleted")
	}
}

// testInvalidTargets creates environments in namespaces that cannot be targets.
func (s *testCluster) testInvalidTargets(t *testing.T) {
	c := s.newFixture(t, "misplaced", shop, workloads("api", "worker"))
	c.mustApply(t, "alice")
	for target, why := range map[string]string{
		c.source:            "source",
		c.target:            "alice",
		"slipstream-system": "server",
	} {
		// Created by the administrator, because dave has no permissions there.
		_, err := c.applyEnvironment(t.Context(), s.admin, "other", target)
		if err == nil || !strings.Contains(err.Error(), "spec.targetNamespace") || !strings.Contains(err.Error(), why) {
			t.Errorf("environment in %s: %v", target, err)
		}
	}
	manifest := fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: AppCatalog\nmetadata: {name: other, namespace: %s}\n"+
		"spec: {sourceNamespace: %s, workloads: [{kind: Deployment, name: api}]}", c.team, c.target)
	if _, err := s.admin.Kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err == nil ||
		!strings.Contains(err.Error(), "spec.sourceNamespace") {
		t.Errorf("catalog of a target namespace: %v", err)
	}
}
