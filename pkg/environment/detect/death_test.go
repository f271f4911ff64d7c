// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestDeathAtEveryWrite kills the process before and after each of its writes, and starts another one.
func TestDeathAtEveryWrite(t *testing.T) {
	const both = "alice Pending* Changed ConfigMap settings Removed Secret secret-database"
	for name, story := range map[string]story{
		"two environments": {change: changeBoth, want: []string{both, "bob Pending* Changed ConfigMap settings"}, writes: 8},
		"what has been recorded before": {
			before: func(s *fixture) {
				s.put("queue", "2")
				s.expectRecords("alice Pending* Changed ConfigMap queue")
			},
			change: changeBoth, writes: 7, want: []string{
				"alice Pending* Changed ConfigMap queue Changed ConfigMap settings Removed Secret secret-database",
				"bob Pending* Changed ConfigMap settings",
			},
		},
		"changed back": {
			before: func(s *fixture) {
				s.put("queue", "2")
				s.expectRecords("alice Pending* Changed ConfigMap queue")
			},
			change: func(s *fixture) { s.put("queue", "1") }, writes: 4, want: []string{"alice Superseded Changed ConfigMap queue"},
		},
		"beside a run": {
			before: func(s *fixture) {
				s.put("queue", "2")
				s.expectRecords("alice Pending* Changed ConfigMap queue")
				s.move("alice", v1alpha1.SyncStateInProgress)
			},
			change: changeBoth, writes: 8,
			want: []string{"alice InProgress Changed ConfigMap queue", both, "bob Pending* Changed ConfigMap settings"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for write := range story.writes {
				for _, answerLost := range []bool{false, true} {
					story.dies(t, write+1, answerLost)
				}
			}
		})
	}
}

// story is a change while no process runs, and the result of the next process.
type story struct {
	before, change func(*fixture)
	want           []string
	// writes is the number of writes, including the end of the batch.
	writes int
}

func changeBoth(s *fixture) {
	s.put("settings", "2")
	s.remove("secret-database")
}

// dies has a process die at a write, and another one continue.
func (y story) dies(t *testing.T, last int, answerLost bool) {
	t.Helper()
	s := begunFixture(t)
	if y.before != nil {
		y.before(s)
	}
	s.rests()
	s.stop()
	y.change(s)
	s.process.LoseResponse(answerLost)
	ended := s.start(last)
	s.eventually(fmt.Sprintf("the process dies at write %d", last), func() error {
		select {
		case <-ended:
			return nil
		default:
			return fmt.Errorf("records: %q", s.recordLines())
		}
	})
	s.restart()
	s.waits("the sources are watched", s.watchedTypes(begunWatches...))
	s.stays(y.want...)
	// The comparison by the starting watches is another batch.
	if got := s.process.Writes(); got > y.writes+1 {
		t.Errorf("%[2]d writes after a death at write %[1]d", last, got)
	}
	for _, environment := range []string{"alice", "bob"} {
		if differing, seen := s.differing(environment), s.seen(environment); !slices.Equal(differing, seen) {
			t.Errorf("environment %s: %q differ, %q are seen", environment, differing, seen)
		}
	}
}
