// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
)

// TestLeaderEnds ends the leader of two replicas in the middle of changes: by a kill, and
// then the next by a stop.
func TestLeaderEnds(t *testing.T) {
	s := newStage(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2})
	client := s.client(t)
	m := s.newMirror(t, "leaders", "granularity: PerChange")
	m.watch(t, "config", "configmaps")
	write(t, client, "leaders", "first", "first")
	m.equal(t, client)
	m.addTheirs(t)
	// Whoever is alone leads, and goes on leading when the other comes back.
	stop(t, s, syscall.SIGTERM, 1)
	s.otherLeader(t, client, "")
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for leader, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		m.endLeader(t, client, leader, signal)
		if err := s.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.equal(t, client)
		m.settled(t)
	}
	m.unharmed(t)
}

// endLeader ends a replica that leads while changes come, and waits for the other to push.
func (m *mirror) endLeader(t *testing.T, client kubernetes.Interface, leader int, signal syscall.Signal) {
	t.Helper()
	before, begun := m.otherLeader(t, client, ""), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			write(t, client, m.namespace, fmt.Sprintf("c%02d", i%10), fmt.Sprintf("%d-%d", leader, i))
			if i == 30 {
				close(begun)
			}
		}
	}()
	<-begun
	ended, gone := time.Now(), make(chan error, 1)
	go func() { gone <- m.StopServer(t.Context(), signal, leader) }()
	m.otherLeader(t, client, before)
	led := time.Since(ended)
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	<-done
	m.equal(t, client)
	t.Logf("%s: another leads after %s, all is pushed after %s", signal, led.Round(10*time.Millisecond), time.Since(ended).Round(10*time.Millisecond))
}

// otherLeader waits until somebody leads, other than one, and returns its identity.
func (s *stage) otherLeader(t *testing.T, client kubernetes.Interface, than string) (holder string) {
	t.Helper()
	eventually(t, "another leader", func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases(devcluster.ServerNamespace).Get(ctx, "slipstream", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the Lease: %w", err)
		}
		if holder = *lease.Spec.HolderIdentity; holder == "" || holder == than {
			return errors.New("none yet")
		}
		return nil
	})
	return holder
}
