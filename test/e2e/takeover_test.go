// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// TestLeaderEnds ends the leader of two replicas during changes, first with SIGKILL, then the next leader with SIGTERM.
func TestLeaderEnds(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2})
	client := mirrortest.Client(t, s.Admin())
	m := s.newMirror(t, "leaders", "granularity: PerChange")
	m.Watch(t, "config", "configmaps")
	write(t, client, "leaders", "first", "first")
	m.Equal(t, client)
	m.addTheirs(t)
	for round, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		m.endLeader(t, client, round, signal)
		if err := s.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.Equal(t, client)
		m.Settled(t)
	}
	m.unharmed(t)
}

// endLeader ends the leading replica during changes, and waits until the other one has pushed them.
func (m *mirror) endLeader(t *testing.T, client kubernetes.Interface, round int, signal syscall.Signal) {
	t.Helper()
	before, started := m.OtherLeader(t, client, ""), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			write(t, client, m.Namespace, fmt.Sprintf("c%02d", i%10), fmt.Sprintf("%d-%d", round, i))
			if i == 30 {
				close(started)
			}
		}
	}()
	<-started
	leader := m.LeadingReplica(t, 2)
	ended, gone := time.Now(), make(chan error, 1)
	go func() { gone <- m.StopServer(t.Context(), signal, leader) }()
	m.OtherLeader(t, client, before)
	led := time.Since(ended)
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	<-done
	m.Equal(t, client)
	t.Logf("%s: another replica leads after %s, all changes are pushed after %s", signal, led.Round(10*time.Millisecond),
		time.Since(ended).Round(10*time.Millisecond))
}
