// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// shortWindow is the shortest window that a SyncPolicy allows. Tests that do not depend on batches use it.
const shortWindow = time.Second

// rights are the roles of users who manage the source, who edit catalogs of it, and who edit catalogs without reading the source.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operators}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale, deployments/status], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps, services, secrets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operators}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operators}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipstream-edit}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}
`

// testCluster is a cluster with a server and several users.
type testCluster struct {
	*mirrortest.AdminCluster
	// wire is the server's connection to kube-apiserver.
	wire *mirrortest.Wire
	// ann and bob change the source, eve edits catalogs, mallory can edit catalogs but not read the source.
	ann, bob, eve, mallory *people.Person
}

// newTestCluster starts a cluster whose kube-apiserver sends audit events. It has no watch cache for Deployments, so their watches expire
// with etcd's history.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	base, wire := mirrortest.NewWiredCluster(t, devcluster.Options{
		Audit: true, APIServerArgs: []string{"--watch-cache-sizes=deployments.apps#0"},
		ServerArgs: []string{"--attribution-max-wait=30s"}, // Audit events can be late on a busy machine.
		Parts:      []string{},                             // The fixtures grant the permissions on sources.
		Denials:    "the server has no permission to read the sources of some catalogs",
	})
	s := &testCluster{AdminCluster: base, wire: wire}
	s.Apply(t, rights)
	s.ann, s.bob, s.eve, s.mallory = s.person(t, "ann"), s.person(t, "bob"), s.person(t, "eve"), s.person(t, "mallory")
	s.setBatchWindow(t, shortWindow)
	return s
}

func (s *testCluster) person(t *testing.T, name string) *people.Person {
	t.Helper()
	return people.New(t, s.Cluster, name)
}

// setBatchWindow sets how long changes are batched.
func (s *testCluster) setBatchWindow(t *testing.T, window time.Duration) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: %s}
`, window))
}
