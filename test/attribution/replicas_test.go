// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// leaders sends facts to a replica that does not lead, and then kills the leader during changes.
func leaders(t *testing.T, s *testCluster) {
	s.sendToFollower(t)
	m := s.newMirror(t, "leaders", "configmaps")
	m.mustSet(t, s.alice, "shared", "first")
	m.update(t, "shared", *changes)
	m.mustSet(t, s.alice, "shared", "last")
	m.Holds(t, m.ConfigMapPath("shared"), "value: last\n")
	m.Settled(t)
	commits, err := m.history(t.Context(), "v1/configmaps")
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine the leader may lose its lease meanwhile. Then a commit without a resourceVersion has several changes.
	m.checkShare(t, slices.DeleteFunc(commits, func(c commit) bool { return c.ResourceVersion == "" }), admissionShare)

	leader, done := s.OtherLeader(t, s.admin, ""), make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			if err := m.set(t.Context(), []*person{s.alice, s.bob}[i%2], fmt.Sprintf("c%02d", i%10), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		}
	}()
	m.changesOf(t, "v1/configmaps", "c09", 3)
	if err := s.StopServer(t.Context(), syscall.SIGKILL, s.LeadingReplica(t, 2)); err != nil {
		t.Fatal(err)
	}
	s.OtherLeader(t, s.admin, leader)
	<-done
	for i := range 10 {
		m.Holds(t, m.ConfigMapPath(fmt.Sprintf("c%02d", i)), fmt.Sprintf("value: \"%d\"\n", 290+i))
	}
	m.Settled(t)
	m.checkCommits(t)
}

// checkCommits checks the author of each commit about one change. A commit of a comparison may be about several changes.
func (m *mirror) checkCommits(t *testing.T) {
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
			wrong.add("duplicate: %s", c)
		}
		written[c.ResourceVersion] = true
		if wrong.check(c, m.writeLog.writes[c.ResourceVersion], false) {
			named++
		}
	}
	wrong.report(t)
	t.Logf("%d of %d commits name who made the change", named, len(commits))
}

// sendToFollower makes the second replica the leader while kube-apiserver is connected to the first one.
func (s *testCluster) sendToFollower(t *testing.T) {
	t.Helper()
	// A single replica leads and receives all facts, and kube-apiserver keeps its connections when the other one starts.
	if err := s.StopServer(t.Context(), syscall.SIGTERM, 1); err != nil {
		t.Fatal(err)
	}
	first := s.OtherLeader(t, s.admin, "")
	s.alice.run(t, "create", "configmap", "connected", "-n", "default")
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the other replica leads", func(ctx context.Context) error {
		// The first replica that checks a free Lease takes it. The leader checks less often than the others.
		if _, err := s.Administrator.Run(ctx, "patch", "lease", "slipstream", "-n", "slipstream-system",
			"--type=merge", "-p", `{"spec":{"holderIdentity":""}}`); err != nil {
			return err
		}
		if holder := s.OtherLeader(t, s.admin, ""); holder == first {
			return fmt.Errorf("%s is still the leader", holder)
		}
		return nil
	})
	s.waitForSingleLeader(t)
}

// waitForSingleLeader waits for as long as a replica without the Lease may continue as the leader. The election waits before it
// hands over the Lease; the test did not.
func (s *testCluster) waitForSingleLeader(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the previous leader has stopped", func(ctx context.Context) error {
		lease, err := s.admin.CoordinationV1().Leases(devcluster.ServerNamespace).Get(ctx, "slipstream", metav1.GetOptions{})
		if err != nil {
			return err
		}
		held := lease.Spec.RenewTime.Sub(lease.Spec.AcquireTime.Time)
		if limit := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second; held < limit {
			return fmt.Errorf("the Lease was held for %s, less than %s", held, limit)
		}
		return nil
	})
}
