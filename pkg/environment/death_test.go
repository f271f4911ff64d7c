// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestDeathBetweenWrites ends the process at each of its writes in turn, and starts it again.
func TestDeathBetweenWrites(t *testing.T) {
	for name, story := range map[string]story{
		"a request": {
			begin:  func(s *fixture) { s.ask("one", "jane", v1alpha1.SyncRequestSpec{}) },
			want:   []string{"Environment one Completed by jane r1"},
			images: "web:1 worker:1", revision: 1, writes: 12,
		},
		"by itself": {
			edit: automatic, begin: func(*fixture) {}, want: []string{"Environment auto.shop-r1.1 Completed r1"},
			images: "web:1 worker:1", revision: 1, writes: 12,
		},
		"the next revision": {
			edit: automatic, before: func(s *fixture) { s.applied(1) },
			begin:  func(s *fixture) { s.offer(2, image(web, "2")) },
			want:   []string{"Environment auto.shop-r1.1 Completed r1", "Environment auto.shop-r2.1 Completed r2"},
			images: "web:2", revision: 2, writes: 10,
		},
		"what workloads refer to": {
			edit: automatic, before: func(s *fixture) { s.applied(1) },
			begin:  func(s *fixture) { s.pass(2); s.prompt("batch") },
			want:   []string{"Environment auto.shop-r1.1 Completed r1", "Dependency batch Completed"},
			images: "web:1 worker:1", revision: 1, writes: 5,
		},
		"a rollback": {
			before: func(s *fixture) {
				s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
				s.applied(1)
				s.offer(2, image(web, "2"), worker)
				s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
				s.applied(2)
			},
			begin: func(s *fixture) {
				s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
			},
			want: []string{"Environment one Completed by jane r1", "Environment two Completed by jane r2",
				"Environment generation-2 Completed by jane r1"},
			images: "web:1 worker:1", revision: 1, writes: 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for write := range story.writes {
				story.dies(t, write+1)
			}
		})
	}
}

// story is a change while no process runs, and the result of the next process.
type story struct {
	edit          func(*v1alpha1.Environment)
	before, begin func(*fixture)
	want          []string
	images        string
	revision      int64
	// writes is the minimum number of writes.
	writes int
}

// dies has a process die at a write, and another one continue.
func (y story) dies(t *testing.T, last int) {
	t.Helper()
	s := newFixture(t)
	if y.edit != nil {
		s.change(y.edit)
	}
	if y.before != nil {
		s.start(0)
		y.before(s)
		s.pass(5)
		s.stop()
	}
	y.begin(s)
	ended := s.start(last)
	s.eventually(fmt.Sprintf("the process dies at write %d", last), func() error {
		select {
		case <-ended:
			return nil
		default:
			return fmt.Errorf("records: %q", s.recordLines())
		}
	})
	s.stop()
	s.start(0)
	s.eventually(fmt.Sprintf("it is done after a death at write %d", last), func() error {
		status := s.environment("alice").Status
		if got := s.recordLines(); !slices.Equal(got, y.want) || status.AppliedRevision != y.revision ||
			len(status.ActiveSyncs)+len(status.PendingRequests) > 0 {
			return fmt.Errorf("records: %q, status %+v", got, status)
		}
		return nil
	})
	s.pass(5)
	s.expectRecords(y.want...)
	s.has(y.images)
	s.stop()
}
