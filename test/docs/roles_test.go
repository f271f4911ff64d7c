// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster"
)

// The account of the documentation, and the one of a development cluster's server.
const (
	serverAccount = "{kind: ServiceAccount, namespace: " + devcluster.ServerNamespace + ", name: slipstream}"
	serverUser    = "{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + devcluster.ServerUser + "}"
)

// stopSignal ends the server in good order.
const stopSignal = syscall.SIGTERM

// mirroredTypes are the types, as resource.group, that the documented role of the server
// lets it mirror, by scope.
func mirroredTypes(t *testing.T, root string) (namespaced, cluster []string) {
	t.Helper()
	inCluster := []string{"clusterroles", "clusterrolebindings", "priorityclasses", "storageclasses"}
	for document := range strings.SplitSeq(readFile(t, filepath.Join(root, "artifacts/examples/server-roles.yaml")), "\n---\n") {
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
		t.Fatal("the documented role has no types")
	}
	return namespaced, cluster
}
