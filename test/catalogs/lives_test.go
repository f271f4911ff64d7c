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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// recordStates are the states of the records of a namespace, in order, as kubectl prints them.
type recordStates struct {
	mu     sync.Mutex
	states map[string][]v1alpha1.SyncState
	// returned are the failed records that waitForFailure has returned.
	returned []string
}

// watchStates has eve watch the team's records until the end of the test.
func (c *fixture) watchStates(t *testing.T) *recordStates {
	t.Helper()
	l := &recordStates{states: map[string][]v1alpha1.SyncState{}}
	command := c.eve.Kubectl.Command(t.Context(), "get", "ss", "-n", c.team,
		"--watch", "-o", `jsonpath={.metadata.name} {.status.state}{"\n"}`)
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
				l.add(name, v1alpha1.SyncState(state))
			}
		}
		_ = command.Wait()
	}()
	t.Cleanup(func() { <-ended })
	return l
}

// add appends a state, unless the record is in this state already.
func (l *recordStates) add(record string, state v1alpha1.SyncState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.states[record]; len(before) == 0 || before[len(before)-1] != state {
		l.states[record] = append(before, state)
	}
}

// waitForFailure waits for a new record whose first state is Failed.
func (l *recordStates) waitForFailure(t *testing.T) (record string) {
	t.Helper()
	mirrortest.Eventually(t, "a change fails", func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for name, states := range l.states {
			if states[0] == v1alpha1.SyncStateFailed && !slices.Contains(l.returned, name) {
				l.returned, record = append(l.returned, name), name
				return nil
			}
		}
		return errors.New("no failed record")
	})
	return record
}

// expect waits until the record has been in as many states as expected, and compares them.
func (l *recordStates) expect(t *testing.T, record string, want ...v1alpha1.SyncState) {
	t.Helper()
	var states []v1alpha1.SyncState
	mirrortest.Eventually(t, fmt.Sprintf("%s goes through %d states", record, len(want)), func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if states = slices.Clone(l.states[record]); len(states) < len(want) {
			return fmt.Errorf("%q", states)
		}
		return nil
	})
	if !slices.Equal(states, want) {
		t.Errorf("states of %s = %q, want %q", record, states, want)
	}
}

// expectComplete expects that the records have been in every state, with valid transitions only.
func (l *recordStates) expectComplete(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var reached []v1alpha1.SyncState
	for record, states := range l.states {
		reached = append(reached, states...)
		for i := 1; i < len(states); i++ {
			if err := syncstatus.CheckTransition(v1alpha1.SyncTypeCatalog, states[i-1], states[i]); err != nil {
				t.Errorf("%s: %v", record, err)
			}
		}
	}
	slices.Sort(reached)
	if reached = slices.Compact(reached); !slices.Equal(reached, syncstatus.States(v1alpha1.SyncTypeCatalog)) {
		t.Errorf("only the states %q were reached", reached)
	}
}
