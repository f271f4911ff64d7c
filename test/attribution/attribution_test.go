// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// scenario is a subtest on a cluster.
type scenario struct {
	name string
	run  func(*testing.T, *testCluster)
}

// run runs the scenarios as subtests.
func (s *testCluster) run(t *testing.T, scenarios ...scenario) {
	t.Helper()
	for _, each := range scenarios {
		t.Run(each.name, func(t *testing.T) { each.run(t, s) })
	}
}

// commonScenarios returns the scenarios for every control plane that sends facts.
func commonScenarios() []scenario {
	return []scenario{
		{"ConcurrentUpdates", concurrentUpdates},
		{"SameContent", sameContent},
		{"FailedAttempts", failedAttempts},
		{"Deletions", deletions},
		{"Impersonation", impersonation},
		{"RequestKinds", requestKinds},
		{"Workloads", workloads},
		{"NamespaceDeletion", namespaceDeletion},
		{"OwnKinds", ownKinds},
		{"AppliedTogether", appliedTogether},
	}
}

// longestWait is the longest time that changes can wait for facts. On a busy machine these can be late by more than the default.
const longestWait = "--attribution-max-wait=30s"

// TestBothSignals uses a control plane with audit webhook and admission webhook, as `make dev-up` configures it.
func TestBothSignals(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Audit: true, Admission: true, ServerArgs: []string{longestWait}})
	s.run(t, commonScenarios()...)
	s.run(t,
		scenario{"Undisturbed", undisturbed},
		scenario{"Forged", forged},
		scenario{"SecretPath", secretPath},
		scenario{"Contradicted", contradicted},
		scenario{"Frozen", frozen},
		scenario{"Stopped", stopped},
	)
}

// TestAdmission uses a control plane with the admission webhook only, like a managed one. The last scenario deletes the webhook.
func TestAdmission(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Admission: true})
	s.run(t, commonScenarios()...)
	s.run(t,
		scenario{"Stopped", stopped},
		scenario{"ToolsOnly", toolsOnly},
	)
}

// TestLateAudit uses an audit webhook that sends batches after a second and truncates long events, which are the defaults of
// kube-apiserver. The maximum wait is the longest, because a collection's event is sent after the last of its objects is deleted, which takes
// seconds on a busy machine.
func TestLateAudit(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Audit: true, APIServerArgs: []string{
		"--audit-webhook-batch-max-wait=1s", "--audit-webhook-truncate-max-event-size=102400",
	}, ServerArgs: []string{longestWait}})
	s.run(t,
		scenario{"ConcurrentUpdates", concurrentUpdates},
		scenario{"SameContent", sameContent},
		scenario{"Impersonation", impersonation},
		scenario{"LongCollection", func(t *testing.T, s *testCluster) { deleteCollection(t, s, "long") }},
		scenario{"Finalizers", finalizers},
		scenario{"FilesOfThePlugin", filesOfThePlugin},
	)
}

// TestReplicas uses two replicas, of which one receives the facts.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{
		Audit: true, Storage: devcluster.StorageEtcd3, Replicas: 2,
		APIServerArgs: []string{"--audit-webhook-batch-max-wait=1s"}, ServerArgs: []string{longestWait},
	})
	s.run(t, scenario{"Leaders", leaders})
}
