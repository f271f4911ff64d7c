// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// delivery is an application with objects that are not copied, such as a delivery tool: a StatefulSet without its Service, RBAC
// objects, NetworkPolicies, and objects that it reads through the API.
const delivery = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: controller}
spec:
  serviceName: controller
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec: {serviceAccountName: controller, containers: [{name: main, image: 'delivery:1'}]}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: controller}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: controller}
rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: controller}
subjects: [{kind: ServiceAccount, name: controller, namespace: rightful-production}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: controller}
spec:
  podSelector: {matchLabels: {app: controller}}
  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: rightful-production}}}]}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: projects}, data: {shop: web}}
---
{apiVersion: v1, kind: Secret, metadata: {name: repository}, stringData: {password: only-in-production}}
`

// everywhere grants the application a role in the whole cluster.
const everywhere = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: rightful-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: controller, namespace: rightful-production}]
---
`

// testObjectsThatAreNotCopied copies an application with RBAC objects. The environment lists them, and an administrator applies
// what the plugin prints for them.
func (s *testCluster) testObjectsThatAreNotCopied(t *testing.T) {
	s.Apply(t, everywhere)
	c := s.newFixture(t, "rightful", delivery, "workloads: [{kind: StatefulSet, name: controller}]")
	s.Apply(t, people.In(c.source, "view", s.dave.Name)+people.In(c.source, "secret-readers", s.dave.Name))
	c.mustApply(t, "alice", "include: [{apiVersion: v1, kind: ConfigMap, name: projects}, {apiVersion: v1, kind: Secret, name: repository}]")
	c.mustSync(t, "alice", all)
	want := []string{
		"ConfigMap projects", "NetworkPolicy controller", "Secret repository", "ServiceAccount controller", "StatefulSet controller",
	}
	if diff := cmp.Diff(want, s.objectsIn(t, c.target).names()); diff != "" {
		t.Errorf("objects of the target: want -, got +:\n%s", diff)
	}
	c.waitForStatus(t, "alice", "Synced")
	c.expectNotCopied(t, "ClusterRoleBinding rightful-controller", "Role controller", "RoleBinding controller")

	missing := []string{"missing", "alice", "-n", c.team}
	if out, err := s.plugin(t, s.dave).Run(t.Context(), missing...); err == nil || out != "" || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("missing by dave, who cannot read the roles of the source: %q, %v", out, err)
	}
	out, err := s.plugin(t, s.admin).Run(t.Context(), missing...)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.dave.Kubectl.Feed(t.Context(), out, "apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("dave, who cannot grant roles, applied them: %s", out)
	}
	if _, err := s.admin.Kubectl.Feed(t.Context(), out, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.mustSync(t, "alice", all)
	c.expectNotCopied(t)
	account := "--as=system:serviceaccount:" + c.target + ":controller"
	for _, namespace := range []string{c.target, c.source} {
		s.admin.Run(t, "auth", "can-i", "list", "configmaps", "-n", namespace, account)
	}
	if out, err := s.admin.Kubectl.Run(t.Context(), "auth", "can-i", "list", "secrets", "-n", c.source, account); err == nil {
		t.Errorf("the copy can read Secrets of the source: %s", out)
	}
}

// expectNotCopied waits until an environment lists exactly these objects as not copied.
func (c *fixture) expectNotCopied(t *testing.T, want ...string) {
	t.Helper()
	c.waitFor(t, "alice", "lists the objects that are not copied", func(e *v1alpha1.Environment) error {
		var names []string
		for _, object := range e.Status.NotCopied {
			names = append(names, object.Kind+" "+object.Name)
		}
		is := apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionObjectsMissing)
		if diff := cmp.Diff(want, names); diff != "" || is != (len(want) > 0) {
			return fmt.Errorf("ObjectsMissing = %v, notCopied: want -, got +:\n%s", is, diff)
		}
		return nil
	})
}

// plugin returns the plugin of kubectl, run as a user.
func (s *testCluster) plugin(t *testing.T, as *people.Person) devcluster.Kubectl {
	t.Helper()
	return clustertest.Plugin(t, as.Kubectl.User)
}
