// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// readers is a role to read everything.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
---
`

// testCluster is a cluster with a server and several users.
type testCluster struct {
	*mirrortest.AdminCluster
	// eve can read everything and manage pipelines, mallory can only manage pipelines.
	eve, mallory *people.Person
	// admin is a cluster administrator, used for changes in the cluster and for checks.
	admin *people.Person
}

// newTestCluster starts a cluster whose server has some of its roles in the whole cluster.
func newTestCluster(t *testing.T, parts ...string) *testCluster {
	t.Helper()
	s := &testCluster{}
	s.AdminCluster, _ = mirrortest.NewWiredCluster(t, devcluster.Options{AuditLog: true, Parts: append([]string{}, parts...)})
	s.Apply(t, readers+people.Everywhere("readers", "eve")+people.Everywhere("slipstream-admin", "eve")+
		people.Everywhere("slipstream-admin", "mallory"))
	s.eve, s.mallory = s.person(t, "eve"), s.person(t, "mallory")
	s.admin = people.Admin(t, s.Cluster)
	s.applySyncPolicy(t)
	return s
}

func (s *testCluster) person(t *testing.T, name string) *people.Person {
	t.Helper()
	return people.New(t, s.Cluster, name)
}

// applySyncPolicy applies the SyncPolicy of the tests with more lines.
func (s *testCluster) applySyncPolicy(t *testing.T, lines ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  %s
`, strings.Join(lines, "\n  ")))
}

// restart stops the server with a signal, calls a function, and starts the server again.
func (s *testCluster) restart(t *testing.T, signal syscall.Signal, meanwhile func()) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
