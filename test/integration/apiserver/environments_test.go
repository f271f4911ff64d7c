// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// environmentIn returns an environment of the catalog of catalogIn, in a namespace of its own.
func environmentIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {namespace: %s, name: alice}
spec: {catalogRef: {name: shop}, targetNamespace: %s-alice, createNamespace: true}
`, namespace, namespace)
}

// testEnvironmentEdits checks the pending edits in the responses, like testEdits.
func testEnvironmentEdits(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "environment-edits")
	jane, joe := s.ordinary(t, "jane"), s.ordinary(t, "joe")
	for _, user := range []string{"jane", "joe"} {
		s.kubectl(t, "create", "rolebinding", user, "-n", namespace, "--clusterrole=cluster-admin", "--user="+user)
		testkit.EventuallyWithin(t, deadline, "the binding of "+user, func(ctx context.Context) error {
			_, err := s.admin.Run(ctx, "auth", "can-i", "create", "environments.configbutler.ai", "-n", namespace, "--as="+user)
			return err
		})
	}
	manifest := strings.Replace(environmentIn(namespace), namespace+"-alice, createNamespace: true", namespace, 1)
	columns := "jsonpath={.status.pendingEdits[-1:].generation} {.status.pendingEdits[-1:].actor} {.status.pendingEdits[-1:].fields} " +
		"{.status.automatedBy.username}"
	forged := manifest + "status: {automatedBy: {username: other, time: \"2026-01-01T00:00:00Z\"}}\n"
	created, err := jane.Feed(t.Context(), forged, "create", "-f", "-", "-o", columns)
	if err != nil {
		t.Fatal(err)
	}
	if created != "1 jane  " {
		t.Errorf("newest edit after the creation by jane = %q, want 1 jane", created)
	}
	patch := func(kubectl devcluster.Kubectl, change string, more ...string) (string, error) {
		arguments := []string{"patch", "environment", "alice", "-n", namespace, "--type=merge", "-p", change, "-o", columns}
		return kubectl.Run(t.Context(), append(arguments, more...)...)
	}
	for _, step := range []struct {
		by           devcluster.Kubectl
		change, want string
	}{
		{joe, `{"spec":{"autoSync":true}}`, `2 joe ["autoSync"] joe`},
		{jane, `{"spec":{"ttl":"72h","historyLimit":5}}`, `3 jane ["historyLimit","ttl"] joe`},
		{joe, `{"spec":{"autoSync":false}}`, `4 joe ["autoSync"] `},
	} {
		edited, err := patch(step.by, step.change)
		if err != nil {
			t.Fatal(err)
		}
		if edited != step.want {
			t.Errorf("%s: edits = %q, want %q", step.change, edited, step.want)
		}
	}
	for name, by := range map[string]devcluster.Kubectl{"joe": joe, "admin": s.admin} {
		_, err := patch(by, `{"status":{"automatedBy":{"username":"jane","time":"2026-01-01T00:00:00Z"}}}`, "--subresource=status")
		if err == nil || !strings.Contains(err.Error(), "a status is written by the server only") {
			t.Errorf("status.automatedBy written by %s: %v, want an error", name, err)
		}
	}
}

// testEnvironmentPlacement creates the catalog before and after the environment.
func testEnvironmentPlacement(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "environment-placement")
	s.apply(t, environmentIn(namespace))
	inTarget := strings.Replace(catalogIn(namespace, namespace+"-alice"), "name: shop", "name: loop", 1)
	s.refused(t, inTarget, fmt.Sprintf(`spec.sourceNamespace: Invalid value: "%s-alice": must not be the target of an environment: `+
		`Environment %s/alice builds it`,
		namespace, namespace))
	s.apply(t, catalogIn(namespace, namespace))
	for path, manifest := range map[string]string{
		"spec.targetNamespace: Invalid value: \"" + namespace + "\"": strings.NewReplacer(
			"name: alice", "name: inside", "targetNamespace: "+namespace+"-alice", "targetNamespace: "+namespace).Replace(environmentIn(namespace)),
		"spec.targetNamespace: Invalid value: \"" + namespace + "-alice\"": strings.Replace(environmentIn(namespace), "name: alice",
			"name: second", 1),
		"spec.baseEnvironmentRef.name: Invalid value: \"missing\"": branchIn(namespace, "lost", "missing", "web"),
	} {
		s.refused(t, manifest, path)
	}
	s.apply(t, branchIn(namespace, "bob", "alice", "web"))
	s.refused(t, branchIn(namespace, "carol", "alice", "web"), `spec.branchWorkloads[0]: Invalid value: "Deployment web"`)
	s.apply(t, branchIn(namespace, "carol", "alice", "api"))
	_, err := s.admin.Run(t.Context(), "patch", "envt", "carol", "-n", namespace, "--type=merge",
		"-p", `{"spec":{"branchWorkloads":[{"kind":"Deployment","name":"api"},{"kind":"Deployment","name":"web"}]}}`)
	if err == nil || !strings.Contains(err.Error(), "spec.branchWorkloads[1]") {
		t.Errorf("workload of another Branch: %v, want an error about spec.branchWorkloads[1]", err)
	}
	elsewhere := s.namespace(t, "environment-elsewhere")
	of := strings.Replace(environmentIn(elsewhere), "catalogRef: {name: shop}", "catalogRef: {name: shop, namespace: "+namespace+"}", 1)
	s.refused(t, of, `spec.catalogRef: Invalid value: "`+namespace+`/shop": must be a catalog that admits Environments of the namespace `+
		elsewhere)
	admit := `{"spec":{"accessPolicy":{"namespacedRules":{"mode":"FromSelector",` +
		`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"` +
		elsewhere + `"}}}}}}`
	s.Patch(t, namespace, "cat/shop", admit)
	s.apply(t, of)
}

// branchIn returns a Branch of a base environment in the target of environmentIn.
func branchIn(namespace, name, base, workload string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  catalogRef: {name: shop}
  targetNamespace: %[1]s-alice
  type: Branch
  baseEnvironmentRef: {name: %[3]s}
  branchWorkloads: [{kind: Deployment, name: %[4]s}]
`, namespace, name, base, workload)
}

// refused expects a manifest to be rejected with an error, also as a dry run.
func (s *testCluster) refused(t *testing.T, manifest, want string) {
	t.Helper()
	for _, way := range [][]string{{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
		if _, err := s.admin.Feed(t.Context(), manifest, way...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kubectl %v: %v, want an error with %s", way, err, want)
		}
	}
}
