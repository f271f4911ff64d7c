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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// foreign has an object of the name of a copy be there that is dave's.
func (s *stage) foreign(t *testing.T) {
	c := s.newScene(t, "foreign", shop, workloads("api", "worker"))
	if _, err := s.dave.Kubectl.Feed(t.Context(), "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: dave, own: mine}}",
		"apply", "-n", c.target, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	before := s.of(t, c.target, "ConfigMap settings")
	c.environment(t, "alice")
	record := c.rests(t, c.sync(t, "alice", all), v1alpha1.SyncStateManualIntervention)
	if failures := record.Status.Failures; len(failures) != 1 || failures[0].Reason != v1alpha1.ReasonNotOurs || failures[0].Name != "settings" ||
		failures[0].Type != "ConfigMap" || failures[0].Namespace != c.target {
		t.Errorf("the record names %+v", failures)
	}
	c.says(t, "alice", "Failed: ")
	after := s.of(t, c.target, "ConfigMap settings")
	if after.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the developer's ConfigMap has been changed: %v", after.Object)
	}

	c.synced(t, "alice", `{"spec":{"force":true}}`)
	after = s.of(t, c.target, "ConfigMap settings")
	if after.GetUID() != before.GetUID() || text(after, "data", "level") != "info" || after.GetLabels()[v1alpha1.LabelEnvironment] != "alice" {
		t.Errorf("with force it is %v", after.Object)
	}
	c.says(t, "alice", "Synced")
}

// policy refuses Deployments whose containers have an image of a name, in namespaces that say so.
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

// quota lets a namespace have no Services.
const quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: services, namespace: limited}, spec: {hard: {services: '0'}}}"

// governed has a policy, and a quota, refuse one object of a sync.
func (s *stage) governed(t *testing.T) {
	c := s.newScene(t, "governed", shop, workloads("api", "worker"))
	c.Apply(t, policy)
	mirrortest.Eventually(t, "the policy is in force", func(ctx context.Context) error {
		_, err := s.admin.Kubectl.Feed(ctx, worker, "apply", "--dry-run=server", "-n", c.target, "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "not allowed here") {
			return fmt.Errorf("a worker is answered with: %w", err)
		}
		return nil
	})
	c.newTarget(t, "limited")
	c.Apply(t, quota)
	c.Run(t, "wait", "-n", "limited", "resourcequota/services", "--for=jsonpath={.status.hard.services}=0", "--timeout=180s")
	for _, test := range []struct{ environment, target, kind, name, why string }{
		{"alice", c.target, "Deployment", "worker", "workers are not allowed here"},
		{"bob", "limited", "Service", "api", "exceeded quota: services"},
	} {
		c.environmentIn(t, test.environment, test.target)
		record := c.rests(t, c.sync(t, test.environment, all), v1alpha1.SyncStateManualIntervention)
		failures := record.Status.Failures
		if len(failures) != 1 || failures[0].Type != test.kind || failures[0].Name != test.name || failures[0].Reason != v1alpha1.ReasonRefused ||
			!strings.Contains(failures[0].Message, test.why) {
			t.Errorf("the record of %s names %+v", test.environment, failures)
		}
		if found := s.in(t, test.target).names(); len(found) > 0 {
			t.Errorf("%q have been written to %s", found, test.target)
		}
		c.says(t, test.environment, "Failed: ")
	}
	c.Run(t, "delete", "resourcequota", "services", "-n", "limited")
	c.synced(t, "bob", all)
	if !slices.Contains(s.in(t, "limited").names(), "Service api") {
		t.Error("without the quota there is no Service")
	}
}

// misplaced asks for environments where none may be.
func (s *stage) misplaced(t *testing.T) {
	c := s.newScene(t, "misplaced", shop, workloads("api", "worker"))
	c.environment(t, "alice")
	for target, why := range map[string]string{
		c.source:            "source",
		c.target:            "alice",
		"slipstream-system": "server",
	} {
		// Whether dave may write there is another question.
		_, err := c.applyEnvironment(t.Context(), s.admin, "other", target)
		if err == nil || !strings.Contains(err.Error(), "spec.targetNamespace") || !strings.Contains(err.Error(), why) {
			t.Errorf("an environment in %s: %v", target, err)
		}
	}
	manifest := fmt.Sprintf("apiVersion: configbutler.ai/v1alpha1\nkind: AppCatalog\nmetadata: {name: other, namespace: %s}\n"+
		"spec: {sourceNamespace: %s, workloads: [{kind: Deployment, name: api}]}", c.team, c.target)
	if _, err := s.admin.Kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), "spec.sourceNamespace") {
		t.Errorf("a catalog of a target: %v", err)
	}
}
