// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// readers is a role to read Secrets, which the role view does not include.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secret-readers}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
`

// testCluster is a cluster with a server and several users.
type testCluster struct {
	*mirrortest.AdminCluster
	// ann manages the source, eve edits catalogs, dave has environments, and mallory lacks permissions.
	ann, eve, dave, mallory *people.Person
	// admin is a cluster administrator, used for checks and for changes that users do not make.
	admin *people.Person
	// ownLog is the path of the server's audit log.
	ownLog string
}

// newTestCluster starts a cluster whose kube-apiserver sends audit events and writes an audit log.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	s := newTestClusterOf(t, devcluster.Options{
		Parts: []string{people.Readiness},
		// Lists are not streamed, as in older versions.
		APIServerArgs: []string{"--feature-gates=WatchList=false"},
	})
	s.measureAudit(t)
	return s
}

// measureAudit makes changes of a source until the server should know how late audit events are. Until then each change waits for the longest
// time, 30 s.
func (s *testCluster) measureAudit(t *testing.T) {
	t.Helper()
	c := s.newFixture(t, "measured", shop, workloads("api"))
	c.mustApply(t, "alice")
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for i := range 24 { // It takes 16 that are not in one list, and kube-apiserver sends a list after a second.
		c.setImage(t, "api", fmt.Sprintf("shop/api:%d", i))
		c.ann.Run(t, "annotate", "--overwrite", "-n", c.source, "configmap/settings", fmt.Sprintf("ann.example.com/note=%d", i))
		<-pace.C
	}
}

// newTestClusterOf starts a cluster with options, which set the server's permissions in the whole cluster. In the namespaces of
// sources and targets it has more. kube-apiserver sends audit events after a second, so that one that is late on a busy machine is not much
// later than the others.
func newTestClusterOf(t *testing.T, options devcluster.Options) *testCluster {
	t.Helper()
	s := &testCluster{ownLog: filepath.Join(t.TempDir(), "own.log")}
	options.Audit, options.AuditLog = true, true
	options.ServerArgs = append(options.ServerArgs, "--audit-log-path="+s.ownLog, "--attribution-max-wait=30s")
	options.APIServerArgs = append(options.APIServerArgs, "--audit-webhook-batch-max-wait=1s")
	s.AdminCluster, _ = mirrortest.NewWiredCluster(t, options)
	s.Apply(t, readers)
	s.ann, s.eve, s.dave, s.mallory = s.person(t, "ann"), s.person(t, "eve"), s.person(t, "dave"), s.person(t, "mallory")
	s.admin = people.Admin(t, s.Cluster)
	s.installGatewayAPI(t)
	s.restart(t, syscall.SIGTERM) // Otherwise the server discovers the new types within a minute.
	s.applySyncPolicy(t)
	return s
}

func (s *testCluster) person(t *testing.T, name string) *people.Person {
	t.Helper()
	return people.New(t, s.Cluster, name)
}

// applySyncPolicy applies the SyncPolicy of the tests with more lines: short windows, and few attempts unless the lines differ.
func (s *testCluster) applySyncPolicy(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "retry: ") }) {
		lines = append(lines, "retry: {maxAttempts: 2, backoff: 1s, maxBackoff: 1s}")
	}
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  %s
`, strings.Join(lines, "\n  ")))
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
