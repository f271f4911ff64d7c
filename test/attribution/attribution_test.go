// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// scenario is what people do on a stage.
type scenario struct {
	name string
	run  func(*testing.T, *stage)
}

func (s *stage) show(t *testing.T, scenarios ...scenario) {
	t.Helper()
	for _, each := range scenarios {
		t.Run(each.name, func(t *testing.T) { each.run(t, s) })
	}
}

// everywhere are the scenarios for every control plane that tells who makes changes.
func everywhere() []scenario {
	return []scenario{
		{"Turns", turns},
		{"SameContent", sameContent},
		{"FailedAttempts", failedAttempts},
		{"Deletions", deletions},
		{"Impersonation", impersonation},
		{"Ways", ways},
		{"Workloads", workloads},
		{"NamespaceEnds", namespaceEnds},
		{"OwnKinds", ownKinds},
		{"AppliedTogether", appliedTogether},
	}
}

// TestBothSignals is a control plane that reports and asks, as `make dev-up` has it.
func TestBothSignals(t *testing.T) {
	s := newStage(t, devcluster.Options{Audit: true, Admission: true})
	s.show(t, everywhere()...)
	s.show(t,
		scenario{"Undisturbed", undisturbed},
		scenario{"Forged", forged},
		scenario{"SecretPath", secretPath},
		scenario{"Contradicted", contradicted},
		scenario{"Frozen", frozen},
		scenario{"Stopped", stopped},
	)
}

// TestAdmission is a managed control plane: it asks, and reports nothing. In the end it does not even ask.
func TestAdmission(t *testing.T) {
	s := newStage(t, devcluster.Options{Admission: true})
	s.show(t, everywhere()...)
	s.show(t,
		scenario{"Stopped", stopped},
		scenario{"ToolsOnly", toolsOnly},
	)
}

// TestLateAudit is a control plane that reports late, and leaves out what is long, as kube-apiserver does unless it is told
// otherwise. The server may wait for as long as a busy machine makes it later still.
func TestLateAudit(t *testing.T) {
	s := newStage(t, devcluster.Options{Audit: true, APIServerArgs: []string{
		"--audit-webhook-batch-max-wait=1s", "--audit-webhook-truncate-max-event-size=102400",
	}, ServerArgs: []string{"--attribution-max-wait=10s"}})
	s.show(t,
		scenario{"Turns", turns},
		scenario{"SameContent", sameContent},
		scenario{"Impersonation", impersonation},
		scenario{"LongCollection", func(t *testing.T, s *stage) { deleteCollection(t, s, "long") }},
		scenario{"Finalizers", finalizers},
	)
}

// TestReplicas is a server of two replicas, of which the control plane tells one.
func TestReplicas(t *testing.T) {
	s := newStage(t, devcluster.Options{
		Audit: true, Storage: devcluster.StorageEtcd3, Replicas: 2,
		ServerArgs: []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s", "--leader-elect-retry-period=2s"},
	})
	s.show(t, scenario{"Leaders", leaders})
}
