// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/bench/configmaps"
	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testCluster is a cluster with the tools and the users who change its objects.
type testCluster struct {
	*mirrortest.AdminCluster
	core  kubernetes.Interface
	relay *relay
	// writers are clients of as many users, whose names are those of writerName.
	writers []kubernetes.Interface
	*configmaps.Population
	reverser *reverser
	// sides are those of the server and of GitOps Reverser.
	sides []*side
}

// newTestCluster starts a cluster with the server, and installs GitOps Reverser.
func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	r := newRelay(b)
	s := &testCluster{relay: r, AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{
		ServerProgram: usage.Server(b), Audit: true, Admission: true, APIServerArgs: []string{"--audit-webhook-config-file=" + r.kubeconfig},
	})}
	s.core = mirrortest.Client(b, s.Admin())
	s.Population = &configmaps.Population{Core: s.core, NamespaceSize: namespaceSize}
	s.Run(b, "create", "clusterrole", "writer", "--verb=get,create,update", "--resource=configmaps")
	s.Run(b, "create", "clusterrolebinding", "writers", "--clusterrole=writer", "--group=writers")
	for number := range configmaps.Writers {
		user, err := s.User(writerName(number), "writers")
		if err != nil {
			b.Fatal(err)
		}
		s.writers = append(s.writers, mirrortest.Client(b, user))
	}
	s.reverser = newReverser(b, s)
	for _, t := range []tool{newSlipstream(b, s), s.reverser} {
		remote := mirrortest.NewWire(b, strings.TrimPrefix(s.Env(devcluster.EnvGitURL), "http://"))
		s.sides = append(s.sides, &side{tool: t, cluster: s, remote: remote})
	}
	return s
}

func writerName(number int) string { return "writer-" + string(rune('a'+number)) }

// alone stops all tools but one, and starts that one.
func (s *testCluster) alone(b *testing.B, running *side) {
	b.Helper()
	for _, each := range s.sides {
		if each != running {
			each.stop(b)
		}
	}
	s.run(b, running)
}

// together starts all tools.
func (s *testCluster) together(b *testing.B) {
	b.Helper()
	s.run(b, s.sides...)
}

// run starts the tools that do not run, and waits until they have mirrored everything, and after a start the changes of the warm-up.
func (s *testCluster) run(b *testing.B, sides ...*side) {
	b.Helper()
	warm := true
	for _, each := range sides {
		warm = warm && each.runs
		each.start(b)
	}
	for _, each := range sides {
		each.caughtUp(b)
	}
	if !warm {
		s.warmUp(b, sides...)
	}
}

// stopAll stops all tools.
func (s *testCluster) stopAll(b *testing.B) {
	b.Helper()
	for _, each := range s.sides {
		each.stop(b)
	}
}
