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

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// readers may read what a catalog shows: all of view, and Secrets.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secret-readers}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
`

// stage is a cluster with the server, and its people.
type stage struct {
	*mirrortest.Stage
	// ann runs production, eve edits catalogs of it, dave has environments, and mallory would like to have some.
	ann, eve, dave, mallory *people.Person
	// admin may do everything, and is used to look only, and for what people do not do.
	admin *people.Person
	// ownLog is the audit log of the server.
	ownLog string
}

// newStage starts a cluster whose kube-apiserver tells who makes changes, and writes it down.
func newStage(t *testing.T) *stage {
	t.Helper()
	return newStageOf(t, devcluster.Options{
		Parts: []string{people.Readiness},
		// As older ones do, it answers lists, and does not stream them.
		APIServerArgs: []string{"--feature-gates=WatchList=false"},
	})
}

// newStageOf does so with options, which say what the server may do in the whole cluster. In the source of a catalog and in the target
// of an environment, it has more.
func newStageOf(t *testing.T, options devcluster.Options) *stage {
	t.Helper()
	s := &stage{ownLog: filepath.Join(t.TempDir(), "own.log")}
	options.Audit, options.AuditLog, options.ServerArgs = true, true, []string{"--audit-log-path=" + s.ownLog}
	s.Stage, _ = mirrortest.NewWiredStage(t, options)
	s.Apply(t, readers)
	s.ann, s.eve, s.dave, s.mallory = s.person(t, "ann"), s.person(t, "eve"), s.person(t, "dave"), s.person(t, "mallory")
	s.admin = people.Admin(t, s.Cluster)
	s.installGatewayAPI(t)
	s.restart(t, syscall.SIGTERM) // It would learn of the definitions within a minute.
	s.govern(t)
	return s
}

func (s *stage) person(t *testing.T, name string) *people.Person {
	t.Helper()
	return people.New(t, s.Cluster, name)
}

// govern sets what all environments share: windows as short as they may be, and few attempts, unless the lines say more.
func (s *stage) govern(t *testing.T, lines ...string) {
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

// restart ends the server as a signal does, and starts it again.
func (s *stage) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
