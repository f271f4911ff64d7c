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
	// defaultTimeout is that time where a webhook does not set it.
	defaultTimeout = 10 * time.Second
)

// stopped shows that the cluster does not need the server, and what the server says later of what it has missed.
func stopped(t *testing.T, s *stage) {
	m := s.newMirror(t, "stopped", "configmaps")
	running, _ := m.alternate(t, 0)
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	without, quickest := m.alternate(t, 1)
	t.Logf("20 changes took %s, with the server stopped %s", running.Round(time.Millisecond), without.Round(time.Millisecond))
	if quickest >= webhookTimeout {
		t.Errorf("each of 20 changes took %s or more while the server was stopped", quickest)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Holds(t, m.ConfigMapPath("c19"), "value: 1-19\n")
	m.Settled(t)
	m.judgeFiles(t)
}

// alternate lets two people write objects in turn, those of even numbers the one and those of odd numbers the other in the
// first round, and the other way round in the next. It returns how long that took, and the quickest change. If each change
// waits for the webhook's timeout, the quickest one does, too; how long the others take depends on how busy the machine is.
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

// judgeFiles holds the last commit of each file to who wrote it last: it names that person, or nobody.
func (m *mirror) judgeFiles(t *testing.T) {
	t.Helper()
	named := 0
	for i := range 20 {
		name := fmt.Sprintf("c%02d", i)
		last, err := m.History(t.Context(), "", "-1", "--", m.Folder+"/"+m.ConfigMapPath(name))
		if err != nil {
			t.Fatal(err)
		}
		if judge(t, commit{last[0]}, []string{"bob", "alice"}[i%2], false) {
			named++
		}
	}
	t.Logf("of 20 changes made while the server was stopped the author of %d is known", named)
}

// frozen shows that a server that does not answer holds no change up for longer than the webhook's timeout, and that what
// it was told meanwhile is not booked to the wrong person.
func frozen(t *testing.T, s *stage) {
	m := s.newMirror(t, "frozen", "configmaps")
	m.mustSet(t, s.alice, "web", "0")
	m.named(t, "v1/configmaps", claim{"web", "CREATE", "alice"})
	pid, err := strconv.Atoi(s.Env("SERVER_PIDS"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	quickest, err := m.frozenTurns(t.Context())
	if wake := syscall.Kill(pid, syscall.SIGCONT); wake != nil {
		t.Fatal(wake)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the quickest of %d changes took %s beside a server that does not answer", frozenChanges, quickest.Round(time.Millisecond))
	if quickest >= defaultTimeout {
		t.Errorf("each of %d changes took %s or more beside a server that does not answer", frozenChanges, quickest)
	}
	for _, c := range m.changesOf(t, "v1/configmaps", "web", 1+frozenChanges) {
		judge(t, c, m.ledger.writes[c.ResourceVersion], false)
	}
}

const frozenChanges = 3

// frozenTurns changes an object in turns, and returns how long the quickest change took.
func (m *mirror) frozenTurns(ctx context.Context) (quickest time.Duration, err error) {
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
