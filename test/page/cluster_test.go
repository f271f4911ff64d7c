// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"path/filepath"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/pagetest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// The users of the page. All but ann, eve and the hostile user have dashboards.
const (
	// jane may do everything.
	jane = "jane@example.com"
	// victor may read everything except Secrets, and tim may read the namespace of the team.
	victor, tim = "victor", "tim"
	// nora has no permissions.
	nora = "nora"
	// ann and eve change production.
	ann, eve = "ann", "eve"
)

// The namespaces.
const (
	production = "production"
	team       = "team"
)

// testCluster is a cluster with a server, users, and their dashboards.
type testCluster struct {
	*mirrortest.AdminCluster
	mirror *mirrortest.Mirror
	users  map[string]*people.Person
	// dashboards are those that run, by user. They end with the test.
	dashboards map[string]*pagetest.Dashboard
	root       *testing.T
	// wire is between jane's dashboard and the cluster.
	wire *mirrortest.Wire
	// hosted is the page for all users, nil until a scenario needs it. They log in at the issuer.
	hosted *hosted
	issuer *issuer
}

// newTestCluster starts a cluster that reports authors.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	s := &testCluster{root: t, users: map[string]*people.Person{}, dashboards: map[string]*pagetest.Dashboard{}}
	s.issuer = startIssuer(t)
	ca := filepath.Join(t.TempDir(), "issuer.crt")
	s.issuer.certificate(t, ca)
	// Reviews name authors before their changes arrive, so that changes do not wait for them.
	s.AdminCluster = mirrortest.NewAdminCluster(t, devcluster.Options{Admission: true, APIServerArgs: oidcFlags(s.issuer, ca)})
	s.Apply(t, people.Everywhere("admin", jane)+people.Everywhere("slipstream-admin", jane)+people.Everywhere("view", victor))
	s.Apply(t, `
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  retry: {maxAttempts: 2, backoff: 1s, maxBackoff: 1s}
`)
	return s
}

// person returns a user of that name.
func (s *testCluster) person(t *testing.T, name string) *people.Person {
	t.Helper()
	if s.users[name] == nil {
		s.users[name] = people.New(t, s.Cluster, name)
		if name == tim {
			s.users[name].Run(t, "config", "set-context", "--current", "--namespace="+team)
		}
	}
	return s.users[name]
}

// dashboard returns the dashboard of a user. Jane's uses the wire and is read-only at first. The others may have changes allowed, so that
// only permissions stop them.
func (s *testCluster) dashboard(t *testing.T, user string) *pagetest.Dashboard {
	t.Helper()
	if s.dashboards[user] != nil {
		return s.dashboards[user]
	}
	kubeconfig, arguments := s.person(t, user).Kubectl.User, []string{"--allow-changes"}
	if user == jane {
		kubeconfig, s.wire = mirrortest.Wired(s.root, kubeconfig)
		arguments = nil
	}
	s.dashboards[user] = pagetest.StartDashboard(s.root, kubeconfig, arguments...)
	return s.dashboards[user]
}
