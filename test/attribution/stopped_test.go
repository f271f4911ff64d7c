// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	// webhookTimeout is the time after which kube-apiserver stops waiting for the webhook.
	webhookTimeout = 2 * time.Second
	// defaultTimeout is the timeout of a webhook that does not set one.
	defaultTimeout = 10 * time.Second
)

// stopped checks that the cluster works while the server is stopped, and the authors of changes in the meantime.
func stopped(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "stopped", "configmaps")
	running, _ := m.alternate(t, 0)
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	without, quickest := m.alternate(t, 1)
	t.Logf("20 changes took %s, and %s with the server stopped", running.Round(time.Millisecond), without.Round(time.Millisecond))
	if quickest >= webhookTimeout {
		t.Errorf("each of 20 changes took %s or more while the server was stopped", quickest)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Holds(t, m.ConfigMapPath("c19"), "value: 1-19\n")
	m.Settled(t)
	m.checkFiles(t)
}

// alternate has two users write objects alternately, and swaps their objects in the next round. It returns the total duration and that
// of the fastest change. If each change waited for the webhook's timeout, so would the fastest one; the others depend on the load
// of the machine.
func (m *mirror) alternate(t *testing.T, round int) (all, quickest time.Duration) {
	t.Helper()
	for i := range 20 {
		began := time.Now()
		m.mustSet(t, []*person{m.alice, m.bob}[(i+round)%2], fmt.Sprintf("c%02d", i), fmt.Sprintf("%d-%d", round, i))
		took := time.Since(began)
		all += took
		if i == 0 || took < quickest {
			quickest = took
		}
	}
	return all, quickest
}

// checkFiles checks that the last commit of each file names its last author or none.
func (m *mirror) checkFiles(t *testing.T) {
	t.Helper()
	named := 0
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		last, err := m.History(t.Context(), "", "-1", "--", m.Folder+"/"+m.ConfigMapPath(name))
		if err != nil {
			t.Fatal(err)
		}
		if checkAuthor(t, commit{last[0]}, []string{"bob", "alice"}[i%2], false) {
			named++
		}
	}
	t.Logf("of 20 changes made while the server was stopped the author of %d is known", named)
}

// frozen checks that a server that does not respond delays changes no longer than the webhook's timeout, and that facts sent in the
// meantime are attributed to the right user.
func frozen(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "frozen", "configmaps")
	m.mustSet(t, s.alice, "web", "0")
	m.expectAuthors(t, "v1/configmaps", expected{"web", "CREATE", "alice"})
	pid, err := strconv.Atoi(s.Env("SERVER_PIDS"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	quickest, err := m.changeWhileFrozen(t.Context())
	if wake := syscall.Kill(pid, syscall.SIGCONT); wake != nil {
		t.Fatal(wake)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the fastest of %d changes took %s while the server did not respond", frozenChanges, quickest.Round(time.Millisecond))
	if quickest >= defaultTimeout {
		t.Errorf("each of %d changes took at least %s while the server did not respond", frozenChanges, quickest)
	}
	// When the server was stopped for long, it has lost its lease, and one commit has several changes.
	m.Holds(t, m.ConfigMapPath("web"), fmt.Sprintf("value: frozen-%d\n", frozenChanges-1))
	m.Settled(t)
	m.checkCommits(t)
}

const frozenChanges = 3

// changeWhileFrozen has users change an object alternately, and returns the duration of the fastest change.
func (m *mirror) changeWhileFrozen(ctx context.Context) (quickest time.Duration, err error) {
	for i := range frozenChanges {
		began := time.Now()
		if err := m.set(ctx, []*person{m.bob, m.alice}[i%2], "web", fmt.Sprint("frozen-", i)); err != nil {
			return 0, err
		}
		if took := time.Since(began); i == 0 || took < quickest {
			quickest = took
		}
	}
	return quickest, nil
}
