// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// stopSignal stops the server gracefully.
const stopSignal = syscall.SIGTERM

// installManifest is the manifest for installations without helm.
const installManifest = "artifacts/install.yaml"

// shopCredentials allow the server to read the credentials of a repository, like the value `credentials: {shop: [shop-git]}`.
const shopCredentials = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: shop, name: slipstream-server-credentials}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [shop-git], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: shop, name: slipstream-server-credentials}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: slipstream-server-credentials}
subjects: [{kind: ServiceAccount, namespace: ` + devcluster.ServerNamespace + `, name: slipstream}]
`

// gatewayAPI is the definition of a type of the Gateway API: a plural and a kind.
const gatewayAPI = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.gateway.networking.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {plural: %[1]s, kind: %[2]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestManifests applies every manifest, as a dry run and for real. The server must mirror all types for which the default values of the
// chart grant permissions.
func TestManifests(t *testing.T) {
	t.Parallel()
	root := moduleRoot(t)
	cluster := clustertest.Start(t, devcluster.Options{
		Server: true, Manifest: filepath.Join(root, installManifest),
		Denials: "the manifests include catalogs, environments and pipelines without the values for their permissions",
	})
	admin := cluster.Kubectl(cluster.Admin())
	kubectl := func(arguments ...string) {
		t.Helper()
		if _, err := admin.Run(t.Context(), arguments...); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"shop", "shop-staging", "teams", "mirror", "preview"} { // a dry run does not create them
		kubectl("create", "namespace", namespace)
	}
	kubectl("create", "secret", "generic", "shop-git", "-n", "shop", "--from-literal=username=u", "--from-literal=password=p")
	for _, manifest := range inOrder(manifests(t, root)) {
		content := ownServer(cluster).Replace(readFile(t, filepath.Join(root, manifest)))
		for _, arguments := range [][]string{{"apply", "--dry-run=server", "-f", "-"}, {"apply", "-f", "-"}} {
			if _, err := admin.Feed(t.Context(), content, arguments...); err != nil {
				t.Errorf("%s: %v", manifest, err)
			}
		}
	}
	for plural, kind := range map[string]string{
		"gateways": "Gateway", "httproutes": "HTTPRoute", "grpcroutes": "GRPCRoute", "referencegrants": "ReferenceGrant",
	} {
		if _, err := admin.Feed(t.Context(), fmt.Sprintf(gatewayAPI, plural, kind), "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=10m")

	for _, manifest := range []string{shopCredentials, rulesOf(mirroredTypes(t, root))} {
		if _, err := admin.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	kubectl("wait", "--for=condition=Ready", "--timeout=10m", "-n", "shop",
		"gitrepoconfig/production", "gitdestination/production", "watchrule/granted", "clusterwatchrule/granted",
		"watchrule/workloads", "watchrule/claims", "clusterwatchrule/platform")
	kubectl("wait", "--for=condition=SecretsEncrypted", "--timeout=10m", "-n", "shop", "gitdestination/production")
}

// inOrder sorts files so that prerequisites come first.
func inOrder(files []string) []string {
	var first, last []string
	for _, file := range files {
		if strings.HasSuffix(file, "shop.yaml") || strings.HasSuffix(file, "definition.yaml") {
			first = append(first, file)
		} else {
			last = append(last, file)
		}
	}
	return append(first, last...)
}

// rulesOf returns rules that select the types of both scopes.
func rulesOf(namespaced, cluster []string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: granted, namespace: shop}
spec:
  destinationRef: {name: production}
  rules:
  - {name: granted, resources: [%s]}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: granted}
spec:
  destinationRef: {namespace: shop, name: production}
  rules:
  - {name: granted, scope: Cluster, resources: [%s]}
`, strings.Join(namespaced, ", "), strings.Join(cluster, ", "))
}

// mirroredTypes returns the types, as resource.group, that the roles of the server include, by scope.
func mirroredTypes(t *testing.T, root string) (namespaced, cluster []string) {
	t.Helper()
	inCluster := []string{"clusterroles", "clusterrolebindings", "priorityclasses", "storageclasses"}
	for document := range strings.SplitSeq(readFile(t, filepath.Join(root, installManifest)), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(role.Name, "slipstream-server-mirrored") || role.Kind != "ClusterRole" {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				name := strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")
				if slices.Contains(inCluster, resource) {
					cluster = append(cluster, name)
				} else {
					namespaced = append(namespaced, name)
				}
			}
		}
	}
	if len(namespaced) == 0 || len(cluster) == 0 {
		t.Fatal("roles have no types")
	}
	return namespaced, cluster
}
