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

// undelayed is more than many changes take that nobody holds up, and less than as many take that the webhook's timeout
// holds up.
const undelayed = 30 * time.Second

// stopped shows that the cluster does not need the server, and what the server says later of what it has missed.
func stopped(t *testing.T, s *stage) {
	m := s.newMirror(t, "stopped", "configmaps")
	running := m.alternate(t, 0)
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	without := m.alternate(t, 1)
	t.Logf("20 changes took %s, with the server stopped %s", running.Round(time.Millisecond), without.Round(time.Millisecond))
	if without > undelayed {
		t.Errorf("20 changes took %s while the server was stopped", without)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Holds(t, m.ConfigMapPath("c19"), "value: 1-19\n")
	m.Settled(t)
	m.judgeFiles(t)
}

// alternate lets two people write objects in turn, those of even numbers the one and those of odd numbers the other in the
// first round, and the other way round in the next. It returns how long that took.
func (m *mirror) alternate(t *testing.T, round int) time.Duration {
	t.Helper()
	began := time.Now()
	for i := range 20 {
		m.mustSet(t, []*person{m.alice, m.bob}[(i+round)%2], fmt.Sprintf("c%02d", i), fmt.Sprintf("%d-%d", round, i))
	}
	return time.Since(began)
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
	began := time.Now()
	err = m.frozenTurns(t.Context())
	took := time.Since(began)
	if wake := syscall.Kill(pid, syscall.SIGCONT); wake != nil {
		t.Fatal(wake)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d changes took %s beside a server that does not answer", frozenChanges, took.Round(time.Millisecond))
	if took > undelayed {
		t.Errorf("%d changes took %s beside a server that does not answer", frozenChanges, took)
	}
	for _, c := range m.changesOf(t, "v1/configmaps", "web", 1+frozenChanges) {
		judge(t, c, m.ledger.writes[c.ResourceVersion], false)
	}
}

const frozenChanges = 3

func (m *mirror) frozenTurns(ctx context.Context) error {
	for i := range frozenChanges {
		if err := m.set(ctx, []*person{m.bob, m.alice}[i%2], "web", fmt.Sprint("frozen-", i)); err != nil {
			return err
		}
	}
	return nil
}
