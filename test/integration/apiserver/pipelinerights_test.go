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

// pipelineIn returns a pipeline with a Secret and Jobs in a namespace. It is suspended, because nothing of it is reachable.
func pipelineIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPipeline
metadata: {name: %[1]s}
spec:
  suspend: true
  instances: {resources: [configmaps]}
  sinks:
  - {name: index, http: {url: "https://index.example.com", format: CloudEvents, secretRef: {namespace: %[1]s, name: token}}}
  - name: batch
    job:
      namespace: %[1]s
      serviceAccountName: robot
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example.com/main}]}}}}
`, namespace)
}

// lister returns a user who can write pipelines, and list definitions and ConfigMaps.
func (s *testCluster) lister(t *testing.T, name string) devcluster.Kubectl {
	t.Helper()
	user := s.ordinary(t, name)
	s.apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [configbutler.ai], resources: [syncpipelines, syncpipelines/sync], verbs: [get, create, update, patch]}
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, name))
	testkit.EventuallyWithin(t, deadline, "the grant to take effect", func(ctx context.Context) error {
		out, err := s.admin.Run(ctx, "auth", "can-i", "list", "configmaps", "-A", "--as="+name)
		if err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
		return nil
	})
	return user
}

func testPipelinePermissions(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "pipeline-rights")
	s.apply(t, pipelineIn(namespace))
	lou := s.lister(t, "lou")
	own := strings.Replace(pipelineIn(namespace), "name: "+namespace+"}\nspec", "name: of-lou}\nspec", 1)
	alone, _, _ := strings.Cut(strings.Replace(own, ", secretRef: {namespace: "+namespace+", name: token}", "", 1), "  - name: batch")
	refusals := []struct{ name, manifest, want string }{
		{"a Secret of another namespace", own, `user "lou" cannot get secrets "token" in the namespace pipeline-rights`},
		{"Jobs", own, `user "lou" cannot create jobs.batch in the namespace pipeline-rights`},
		{"an account", own, `user "lou" cannot impersonate serviceaccounts "robot" in the namespace pipeline-rights`},
		{"Secrets by name", strings.Replace(alone, "[configmaps]", "[secrets]", 1), `user "lou" cannot list secrets in the whole cluster`},
		{"Secrets by a wildcard", strings.Replace(alone, "[configmaps]", `["*"]`, 1), `user "lou" cannot list *.* in the whole cluster`},
		{
			"Secrets by saying nothing", strings.Replace(alone, "{resources: [configmaps]}", "{}", 1),
			`user "lou" cannot list *.* in the whole cluster`,
		},
	}
	for _, each := range refusals {
		for _, way := range [][]string{{"create", "-f", "-"}, {"create", "--dry-run=server", "-f", "-"}, {"apply", "--server-side", "-f", "-"}} {
			if _, err := lou.Feed(t.Context(), each.manifest, way...); err == nil || !strings.Contains(err.Error(), each.want) {
				t.Errorf("%s, %v: %v\nwant a refusal with %s", each.name, way, err, each.want)
			}
		}
	}
	if _, err := lou.Feed(t.Context(), alone, "create", "-f", "-"); err != nil {
		t.Errorf("pipeline with all permissions: %v", err)
	}
	t.Run("OtherUser", func(t *testing.T) { testPipelineOfAnother(t, s, lou, namespace) })
}

// testPipelineOfAnother checks that a user cannot redirect another user's pipeline by a partial change.
func testPipelineOfAnother(t *testing.T, s *testCluster, lou devcluster.Kubectl, name string) {
	before := s.jsonpath(t, "{.spec}", "syncpipeline", name)
	const mine = `"http": {"url": "https://mine.example.com"`
	for what, change := range map[string]struct{ kind, patch string }{
		"the URL":         {"json", `[{"op": "replace", "path": "/spec/sinks/0/http/url", "value": "https://mine.example.com"}]`},
		"the URL, merged": {"strategic", `{"spec": {"sinks": [{"name": "index", ` + mine + `}}]}}`},
		"a sink":          {"strategic", `{"spec": {"sinks": [{"name": "mine", ` + mine + `, "format": "CloudEvents"}}]}}`},
		"a sink of another name": {
			"json",
			`[{"op": "copy", "from": "/spec/sinks/0", "path": "/spec/sinks/-"}, {"op": "replace", "path": "/spec/sinks/2/name", "value": "b"}]`,
		},
		"a namespace":      {"json", `[{"op": "replace", "path": "/spec/sinks/1/job/namespace", "value": "kube-system"}]`},
		"a template":       {"json", `[{"op": "add", "path": "/spec/sinks/1/job/template/spec/backoffLimit", "value": 3}]`},
		"a type":           {"merge", `{"spec": {"instances": {"resources": ["configmaps", "secrets"]}}}`},
		"what is left out": {"merge", `{"spec": {"instances": {"exclude": []}}}`},
		"the suspension":   {"merge", `{"spec": {"suspend": false}}`},
		"how many Jobs":    {"merge", `{"spec": {"batch": {"maxItems": 1}}}`},
	} {
		for _, dryRun := range []string{"none", "server"} {
			_, err := lou.Run(t.Context(), "patch", "syncpipeline", name, "--type="+change.kind, "-p", change.patch, "--dry-run="+dryRun)
			if err == nil || !strings.Contains(err.Error(), `user "lou" cannot`) {
				t.Errorf("%s, dry run %s: %v, want a refusal", what, dryRun, err)
			}
		}
	}
	if after := s.jsonpath(t, "{.spec}", "syncpipeline", name); after != before {
		t.Errorf("pipeline spec = %s\nwant %s", after, before)
	}
	for what, patch := range map[string]string{
		"a label":        `{"metadata": {"labels": {"team": "search"}}}`,
		"no definitions": `{"spec": {"customResourceDefinitions": {"enabled": false}}}`,
	} {
		if _, err := lou.Run(t.Context(), "patch", "syncpipeline", name, "--type=merge", "-p", patch); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if who := s.jsonpath(t, "{.status.editedBy.username}", "syncpipeline", name); who != "admin" {
		t.Errorf("editedBy = %q, want admin", who)
	}
	other := strings.Replace(pipelineIn(name), "restartPolicy: Never", "restartPolicy: Never, serviceAccountName: root", 1)
	_, err := s.admin.Feed(t.Context(), other, "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), `must be absent or "robot"`) {
		t.Errorf("template with another service account than the sink: %v, want an error", err)
	}
}
