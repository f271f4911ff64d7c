// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// shortWindow is the shortest that a SyncPolicy may ask for. Where nothing depends on which changes are of one batch, there
// is no reason to wait longer for it.
const shortWindow = time.Second

// rights are those of who runs production, of who edits catalogs of it, and of who may edit catalogs and not read production.
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

// stage is a cluster with the server, in which production has people of its own.
type stage struct {
	*mirrortest.Stage
	// wire is the server's way to kube-apiserver.
	wire *mirrortest.Wire
	// ann and bob change production, eve edits catalogs of it, mallory would like to.
	ann, bob, eve, mallory *people.Person
}

// newStage starts a cluster whose kube-apiserver tells who makes changes. It keeps no Deployments in memory, so that a watch
// of them is as old as etcd's history.
func newStage(t *testing.T) *stage {
	t.Helper()
	base, wire := mirrortest.NewWiredStage(t, devcluster.Options{
		Audit: true, APIServerArgs: []string{"--watch-cache-sizes=deployments.apps#0"},
		Parts:   []string{}, // The server may follow the sources of catalogs, where a scene says so.
		Denials: "the sources of some catalogs are hidden from the server",
	})
	s := &stage{Stage: base, wire: wire}
	s.Apply(t, rights)
	s.ann, s.bob, s.eve, s.mallory = s.person(t, "ann"), s.person(t, "bob"), s.person(t, "eve"), s.person(t, "mallory")
	s.gather(t, shortWindow)
	return s
}

func (s *stage) person(t *testing.T, name string) *people.Person {
	t.Helper()
	return people.New(t, s.Cluster, name)
}

// gather sets how long changes are gathered.
func (s *stage) gather(t *testing.T, window time.Duration) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: %s}
`, window))
}
