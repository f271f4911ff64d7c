// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// leaders has the control plane tell a replica that does not lead, and then kills the one that does while changes come.
func leaders(t *testing.T, s *stage) {
	s.tellTheFollower(t)
	m := s.newMirror(t, "leaders", "configmaps")
	m.mustSet(t, s.alice, "shared", "first")
	m.takeTurns(t, "shared", *changes)
	m.judgeAll(t, "v1/configmaps", 1+*changes, admissionShare)

	leader, turns := s.OtherLeader(t, s.admin, ""), make(chan struct{})
	go func() {
		defer close(turns)
		for i := range 300 {
			if err := m.set(t.Context(), []*person{s.alice, s.bob}[i%2], fmt.Sprintf("c%02d", i%10), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
	}()
	m.changesOf(t, "v1/configmaps", "c09", 3)
	if err := s.StopServer(t.Context(), syscall.SIGKILL, 1); err != nil {
		t.Fatal(err)
	}
	s.OtherLeader(t, s.admin, leader)
	<-turns
	for i := range 10 {
		m.Holds(t, m.ConfigMapPath(fmt.Sprintf("c%02d", i)), fmt.Sprintf("value: \"%d\"\n", 290+i))
	}
	m.Settled(t)
	m.neverWrong(t)
}

// neverWrong holds each commit about one change to the answer that the change was given. A commit of a comparison may be
// about several.
func (m *mirror) neverWrong(t *testing.T) {
	t.Helper()
	commits, err := m.history(t.Context(), "v1/configmaps")
	if err != nil {
		t.Fatal(err)
	}
	named, written := 0, map[string]bool{}
	var wrong mistakes
	for _, c := range commits {
		if c.ResourceVersion == "" {
			continue
		}
		if written[c.ResourceVersion] {
			wrong.add("twice: %s", c)
		}
		written[c.ResourceVersion] = true
		if wrong.judge(c, m.ledger.writes[c.ResourceVersion], false) {
			named++
		}
	}
	wrong.report(t)
	t.Logf("%d of %d commits name who made the change", named, len(commits))
}

// tellTheFollower brings it about that the second replica leads and the first has kube-apiserver's connections.
func (s *stage) tellTheFollower(t *testing.T) {
	t.Helper()
	// Whoever is alone leads and is told, and goes on being told when the other comes back.
	if err := s.StopServer(t.Context(), syscall.SIGTERM, 1); err != nil {
		t.Fatal(err)
	}
	alone := s.OtherLeader(t, s.admin, "")
	s.alice.run(t, "create", "configmap", "told", "-n", "default")
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the other replica leads", func(ctx context.Context) error {
		// A Lease that is free is taken by who looks first. The leader looks less often than the others.
		if _, err := s.Administrator.Run(ctx, "patch", "lease", "slipstream", "-n", "slipstream-system", "--type=merge", "-p", `{"spec":{"holderIdentity":""}}`); err != nil {
			return err
		}
		if holder := s.OtherLeader(t, s.admin, ""); holder == alone {
			return fmt.Errorf("%s leads again", holder)
		}
		return nil
	})
	s.leadsAlone(t)
}

// leadsAlone waits for as long as a replica whose Lease was taken from it may go on leading. The election keeps the next one
// from taking it before that; the test did not.
func (s *stage) leadsAlone(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the one before has given up", func(ctx context.Context) error {
		lease, err := s.admin.CoordinationV1().Leases(devcluster.ServerNamespace).Get(ctx, "slipstream", metav1.GetOptions{})
		if err != nil {
			return err
		}
		held := lease.Spec.RenewTime.Sub(lease.Spec.AcquireTime.Time)
		if limit := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second; held < limit {
			return fmt.Errorf("the Lease has been held for %s, less than %s", held, limit)
		}
		return nil
	})
}
