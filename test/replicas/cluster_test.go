// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// replicas is the number of servers.
const replicas = 3

// rights are the roles of the users.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: editors}
rules:
- {apiGroups: ["", apps, batch, autoscaling, networking.k8s.io, policy], resources: ["*"], verbs: ["*"]}
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
---
`

// policy is the SyncPolicy.
const policy = `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  retry: {maxAttempts: 5, backoff: 1s, maxBackoff: 1s}
`

// testCluster is a cluster with several replicas on one etcd.
type testCluster struct {
	*mirrortest.AdminCluster
	// admin is the cluster administrator, and users make the changes.
	admin *people.Person
	users []*people.Person
}

// newTestCluster starts a cluster whose kube-apiserver sends audit events. Servers that stop continue to serve for a moment, as those of
// the chart.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(t, devcluster.Options{
		Storage: devcluster.StorageEtcd3, Replicas: replicas, Audit: true,
		ServerArgs: []string{"--shutdown-delay-duration=5s"},
	})}
	s.admin = people.Admin(t, s.Cluster)
	manifests := rights + policy
	for _, name := range []string{"alice", "bob", "carol"} {
		manifests += "---\n" + people.Everywhere("editors", name) + people.Everywhere("slipstream-admin", name)
		s.users = append(s.users, people.New(t, s.Cluster, name))
	}
	s.Apply(t, manifests)
	for _, user := range s.users {
		mirrortest.Eventually(t, user.Name+" has rights", func(ctx context.Context) error {
			_, err := user.Kubectl.Run(ctx, "get", "deployments,syncpipelines", "-n", "default")
			return err
		})
	}
	return s
}

// restart starts the replicas that do not run.
func (s *testCluster) restart(t *testing.T) {
	t.Helper()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestReplicas runs its subtests on one cluster.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t)
	t.Run("LeaderEnds", s.testLeaderEnds)
	t.Run("RollingRestart", s.testRollingRestart)
}

// namespaceOf is the manifest of a namespace.
func namespaceOf(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n", name)
}
