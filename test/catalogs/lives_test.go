// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// lives are the states that records of a namespace come to, in their order, as kubectl tells them.
type lives struct {
	mu sync.Mutex
	of map[string][]v1alpha1.SyncState
	// told are the failed ones that have been asked for.
	told []string
}

// follow has eve watch the records of the team until the test ends.
func (c *scene) follow(t *testing.T) *lives {
	t.Helper()
	l := &lives{of: map[string][]v1alpha1.SyncState{}}
	command := c.eve.Kubectl.Command(t.Context(), "get", "ss", "-n", c.team, "--watch", "-o", `jsonpath={.metadata.name} {.status.state}{"\n"}`)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if name, state, ok := strings.Cut(lines.Text(), " "); ok {
				l.note(name, v1alpha1.SyncState(state))
			}
		}
		_ = command.Wait()
	}()
	t.Cleanup(func() { <-ended })
	return l
}

// note notes a state. A record that is written without another state is in the one that it was in.
func (l *lives) note(record string, state v1alpha1.SyncState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.of[record]; len(before) == 0 || before[len(before)-1] != state {
		l.of[record] = append(before, state)
	}
}

// failed waits until another record begins as what has failed.
func (l *lives) failed(t *testing.T) (record string) {
	t.Helper()
	mirrortest.Eventually(t, "a change fails", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for name, states := range l.of {
			if states[0] == v1alpha1.SyncStateFailed && !slices.Contains(l.told, name) {
				l.told, record = append(l.told, name), name
				return nil
			}
		}
		return errors.New("none does")
	})
	return record
}

// expect waits until the record has been in so many states, and expects them.
func (l *lives) expect(t *testing.T, record string, want ...v1alpha1.SyncState) {
	t.Helper()
	var states []v1alpha1.SyncState
	mirrortest.Eventually(t, fmt.Sprintf("%s goes through %d states", record, len(want)), func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if states = slices.Clone(l.of[record]); len(states) < len(want) {
			return fmt.Errorf("%q", states)
		}
		return nil
	})
	if !slices.Equal(states, want) {
		t.Errorf("%s went through %q, want %q", record, states, want)
	}
}

// complete expects that the records have been in every state, and came to each as the table of states has it.
func (l *lives) complete(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var reached []v1alpha1.SyncState
	for record, states := range l.of {
		reached = append(reached, states...)
		for i := 1; i < len(states); i++ {
			if err := syncstatus.CheckTransition(v1alpha1.SyncTypeCatalog, states[i-1], states[i]); err != nil {
				t.Errorf("%s: %v", record, err)
			}
		}
	}
	slices.Sort(reached)
	if reached = slices.Compact(reached); !slices.Equal(reached, syncstatus.States(v1alpha1.SyncTypeCatalog)) {
		t.Errorf("only %q were reached", reached)
	}
}
