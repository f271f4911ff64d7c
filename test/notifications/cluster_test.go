// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// editors is a role for everything that sinks are about.
const editors = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: editors}
rules:
- {apiGroups: ["", apps, batch, autoscaling, networking.k8s.io, policy], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secret-readers}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployment-readers}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get]}
---
`

// testCluster is a cluster with a server and several users.
type testCluster struct {
	*mirrortest.AdminCluster
	// jane may do everything that sinks are about. Others have the rights that a test grants them.
	jane, admin *people.Person
}

// newTestCluster starts a cluster whose kube-apiserver sends audit events.
func newTestCluster(t *testing.T, options devcluster.Options) *testCluster {
	t.Helper()
	options.Audit, options.AuditLog = true, true
	options.ServerArgs = append(options.ServerArgs, "--attribution-max-wait=30s") // Audit events can be late on a busy machine.
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(t, options)}
	s.Apply(t, editors+people.Everywhere("editors", "jane")+people.Everywhere("slipstream-admin", "jane")+`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  retry: {maxAttempts: 2, backoff: 1s, maxBackoff: 1s}
`)
	s.jane, s.admin = people.New(t, s.Cluster, "jane"), people.Admin(t, s.Cluster)
	mirrortest.Eventually(t, "jane has her rights", func(ctx context.Context) error {
		_, err := s.jane.Kubectl.Run(ctx, "get", "secrets,notificationsinks", "-n", "default")
		return err
	})
	return s
}

// restart stops the server with a signal, and starts it again.
func (s *testCluster) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// isServing reports whether the server's port is open.
func (s *testCluster) isServing(ctx context.Context) bool {
	address := strings.TrimPrefix(s.Env(devcluster.EnvServerURL), "https://")
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// secret creates a Secret as the administrator, with data such as url: ....
func (s *testCluster) secret(t *testing.T, namespace, name string, data ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, stringData: {%s}}", name, namespace,
		strings.Join(data, ", ")))
}

// canList returns a check that a user may list sinks, and other resources of configbutler.ai.
func canList(p *people.Person, namespace string, resources ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, resource := range append(resources, "notificationsinks") {
			if _, err := p.Kubectl.Run(ctx, "get", resource, "-n", namespace); err != nil {
				return err
			}
		}
		return nil
	}
}
