// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// impersonation has one user impersonate another. Only audit events contain the impersonator.
func impersonation(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "impersonation", "configmaps")
	s.alice.run(t, "create", "configmap", "web", "-n", m.Namespace, "--from-literal=a=1", "--as=carol")
	s.alice.run(t, "delete", "configmap", "web", "-n", m.Namespace, "--as=carol")
	for _, c := range m.expectAuthors(t, "v1/configmaps", expected{"web", "CREATE", "carol"}, expected{"web", "DELETE", "carol"}) {
		if c.Signal == "audit" && c.ImpersonatedBy != "alice" {
			t.Errorf("%s: impersonated by %q, want alice", c, c.ImpersonatedBy)
		}
	}
}

// requestKinds changes one object with all kinds of requests.
func requestKinds(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "ways", "configmaps", "secrets")
	manifest := func(value string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: %s}, data: {value: %q}}", m.Namespace, value)
	}
	apply := func(by *person, value string, arguments ...string) {
		t.Helper()
		if _, err := by.kubectl.Feed(t.Context(), manifest(value), append([]string{"apply", "-f", "-"}, arguments...)...); err != nil {
			t.Fatal(err)
		}
	}
	apply(s.alice, "1", "--server-side")
	apply(s.bob, "2", "--server-side", "--force-conflicts", "--field-manager=alice")
	apply(s.carol, "3")
	s.alice.run(t, "patch", "configmap", "web", "-n", m.Namespace, "--type=json", "-p", `[{"op":"replace","path":"/data/value","value":"4"}]`)
	s.bob.run(t, "label", "configmap", "web", "-n", m.Namespace, "team=shop")
	s.carol.run(t, "annotate", "configmap", "web", "-n", m.Namespace, "note=kept")
	s.bob.run(t, "create", "configmap", "generated", "-n", m.Namespace)
	m.expectAuthors(t, "v1/configmaps",
		expected{"web", "CREATE", "alice"}, expected{"web", "UPDATE", "bob"}, expected{"web", "UPDATE", "carol"},
		expected{"web", "UPDATE", "alice"}, expected{"web", "UPDATE", "bob"}, expected{"web", "UPDATE", "carol"},
		expected{"generated", "CREATE", "bob"},
	)
	m.secrets(t)
}

// secrets changes a Secret, whose audit events have only the name and the time. Each user waits for the previous commit.
func (m *mirror) secrets(t *testing.T) {
	t.Helper()
	const resource = "v1/secrets"
	m.bob.run(t, "create", "secret", "generic", "key", "-n", m.Namespace, "--from-literal=a=1")
	m.commits(t, resource, 1)
	m.alice.run(t, "delete", "secret", "key", "-n", m.Namespace)
	m.expectAuthors(t, resource, expected{"key", "CREATE", "bob"}, expected{"key", "DELETE", "alice"})
}

// deployment is the manifest of a Deployment whose ReplicaSets are mirrored.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: %s
  annotations: {configbutler.ai/mirror: "true"}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:%d}]}
`

// workloads has users change a Deployment, and controllers its ReplicaSets.
func workloads(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "workloads", "deployments.apps", "replicasets.apps")
	if _, err := s.alice.kubectl.Feed(t.Context(), fmt.Sprintf(deployment, m.Namespace, 1), "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	m.commits(t, "apps/v1/replicasets", 1)
	s.bob.run(t, "scale", "deployment", "web", "-n", m.Namespace, "--replicas=3")
	for _, c := range m.commits(t, "apps/v1/replicasets", 2) {
		checkAuthor(t, c, "kube-system/deployment-controller", m.needsAuthors(t))
	}
	s.carol.run(t, "set", "image", "deployment/web", "-n", m.Namespace, "web=web:2")
	m.expectAuthors(t, "apps/v1/deployments", expected{"web", "CREATE", "alice"}, expected{"web", "UPDATE", "bob"},
		expected{"web", "UPDATE", "carol"})
}

// namespaceDeletion has a user delete a namespace, and the namespace controller its content.
func namespaceDeletion(t *testing.T, s *testCluster) {
	m := &mirror{testCluster: s, Mirror: s.NewMirror(t, "observer", "granularity: PerChange", "accessPolicy: {allowClusterRules: true}")}
	s.Apply(t, `
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: ends}
spec:
  destinationRef: {namespace: observer, name: main}
  rules:
  - name: configmaps
    scope: Namespaced
    resources: [configmaps]
    namespaceSelector: {matchLabels: {observed: "yes"}}
`)
	s.Ready(t, "", "clusterwatchrule/ends")
	s.alice.run(t, "create", "namespace", "ends")
	s.alice.run(t, "label", "namespace", "ends", "observed=yes")
	s.bob.run(t, "create", "configmap", "first", "-n", "ends", "--from-literal=a=1")
	m.Holds(t, "core/v1/configmaps/ends/first.yaml", "name: first\n")
	s.bob.run(t, "create", "configmap", "web", "-n", "ends", "--from-literal=a=1")
	checkAuthor(t, m.changesOf(t, "v1/configmaps", "web", 1)[0], "bob", m.needsAuthors(t))
	// The finalizer keeps the namespace until the other objects are deleted.
	s.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: held, namespace: ends, finalizers: [example.com/hold]}}`)
	s.carol.run(t, "delete", "namespace", "ends", "--wait=false")
	gone := m.changesOf(t, "v1/configmaps", "web", 2)[1]
	s.Patch(t, "ends", "secret/held", `{"metadata":{"finalizers":null}}`)
	checkAuthor(t, gone, "kube-system/namespace-controller", m.needsAuthors(t))
	if gone.NamespaceDeletedBy != "carol" && m.needsAuthors(t) {
		t.Errorf("%s: the namespace was deleted by %q, want carol", gone, gone.NamespaceDeletedBy)
	}
	s.Delete(t, "", "clusterwatchrule/ends")
}

// appliedTogether has a user apply a destination with the rules that mirror it. All commits must name the user, whether the object
// was applied before or after the rule that selects it.
func appliedTogether(t *testing.T, s *testCluster) {
	m := s.NewMirror(t, "together")
	const manifest = `
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: own, namespace: together}
spec: {repoRef: {name: main}, branch: main, baseFolder: own}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: before, namespace: together}
spec: {destinationRef: {name: own}, rules: [{resources: [configmaps]}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: own, namespace: together}
spec: {destinationRef: {name: own}, rules: [{resources: [watchrules.configbutler.ai, gitdestinations.configbutler.ai]}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: after, namespace: together}
spec: {destinationRef: {name: own}, rules: [{resources: [configmaps]}]}
`
	if _, err := s.alice.kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"gitdestinations/together/own", "watchrules/together/before", "watchrules/together/own", "watchrules/together/after",
	} {
		mirrortest.Eventually(t, file+" is mirrored as alice's", func(ctx context.Context) error {
			author, err := m.Git(ctx, "log", "--format=%an", "main", "--", "own/configbutler.ai/v1alpha1/"+file+".yaml")
			if err == nil && author == "" {
				err = errors.New("no commit")
			} else if err == nil && author != "alice\n" {
				t.Fatalf("authors of %s = %q", file, author)
			}
			return err
		})
	}
}

// ownKinds changes an object of the server's own API.
func ownKinds(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "own", "watchrules.configbutler.ai")
	rule := func(by *person, resources string) {
		t.Helper()
		manifest := fmt.Sprintf(`{apiVersion: configbutler.ai/v1alpha1, kind: WatchRule, metadata: {name: more, namespace: %s},
spec: {destinationRef: {name: main}, rules: [{name: more, resources: [%s]}]}}`, m.Namespace, resources)
		if _, err := by.kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	mirrortest.Eventually(t, "the rule that selects itself is mirrored", func(ctx context.Context) error {
		_, err := m.Git(ctx, "show", "main:"+m.Folder+"/configbutler.ai/v1alpha1/watchrules/own/all.yaml")
		return err
	})
	rule(s.alice, "configmaps")
	rule(s.bob, "secrets")
	s.carol.run(t, "delete", "watchrule", "more", "-n", m.Namespace)
	commits := m.changesOf(t, "configbutler.ai/v1alpha1/watchrules", "more", 3)
	for i, by := range []string{"alice", "bob", "carol"} {
		checkAuthor(t, commits[i], by, m.needsAuthors(t))
	}
}
