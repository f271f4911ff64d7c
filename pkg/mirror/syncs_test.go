// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// ask makes a sync request, as the subresource does.
func (s *fixture) ask(id string, full bool, types ...string) {
	s.t.Helper()
	s.edit(func(d *v1alpha1.GitDestination) {
		d.Status.PendingSyncs = append(d.Status.PendingSyncs, v1alpha1.PendingSync{ID: id, Types: types, Full: full})
	})
}

// answered waits until a sync request is completed.
func (s *fixture) answered(id string) v1alpha1.SyncProgress {
	s.t.Helper()
	var found v1alpha1.SyncProgress
	testkit.Eventually(s.t, "request "+id, func() error {
		syncs := s.record("main").Syncs
		i := slices.IndexFunc(syncs, func(sync v1alpha1.SyncProgress) bool { return sync.ID == id })
		if i < 0 {
			return errors.New("request is unknown")
		}
		if found = syncs[i]; found.CompletionTime == nil {
			return fmt.Errorf("in progress: %+v", found)
		}
		return nil
	})
	return found
}

// TestSyncFindsWhatOthersDid polls the remote only once an hour, so that only a request finds the edits of others.
func TestSyncFindsWhatOthersDid(t *testing.T) {
	for name, types := range map[string][]string{"all": nil, "one type": {"configmaps"}} {
		for _, full := range []bool{false, true} {
			if full && types != nil {
				continue
			}
			t.Run(fmt.Sprintf("%s, full %v", name, full), func(t *testing.T) {
				s := newFixture(t)
				s.cluster.put(configMap("a"), "1")
				s.mirrored()
				s.idle()
				other := s.otherWriter()
				if err := other.edit("edit", func() error {
					return errors.Join(other.write("clusters/a/core/v1/configmaps/shop/a.yaml", "x")(),
						other.write("clusters/a/core/v1/configmaps/shop/b.yaml", "x")())
				}); err != nil {
					t.Fatal(err)
				}
				s.ask("one", full, types...)
				got := s.answered("one")
				if got.Types != 1 || got.Compared != 1 || got.FilesWritten != 1 || got.FilesRemoved != 1 || got.Failures != nil {
					t.Errorf("sync = %+v", got)
				}
				s.mirrored()
				s.stays("main", func() {
					s.ask("two", full, types...)
					if got := s.answered("two"); got.FilesWritten+got.FilesRemoved != 0 || got.Compared != 1 {
						t.Errorf("sync = %+v", got)
					}
				})
			})
		}
	}
}

func TestSyncReportsWhatCannotBeCompared(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.cluster.setRefused(configMaps, errors.New("forbidden"))
	s.ask("refused", false, "configmaps", "deployments.apps")
	got := s.answered("refused")
	if text := strings.Join(got.Failures, ", "); got.Compared != 0 || !strings.Contains(text, "configmaps: ") ||
		!strings.Contains(text, "forbidden") ||
		!strings.Contains(text, "deployments.apps: no rule selects it") {
		t.Errorf("sync = %+v", got)
	}
	s.cluster.setRefused(configMaps, nil)
	s.idle()
}

// TestSyncOutlivesTheProcess checks that the next process completes a request that is still in the destination's status.
func TestSyncOutlivesTheProcess(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.ask("one", false)
	testkit.Eventually(t, "an error", func() error {
		if s.record("main").LastError == "" {
			return errors.New("none")
		}
		return nil
	})
	if got := s.record("main").Syncs; len(got) != 1 || got[0].CompletionTime != nil {
		t.Errorf("sync with the remote down = %+v", got)
	}
	s.stop()
	s.git.guard(nil)
	s.start()
	s.answered("one")
	if left := withoutDone(s.in.destinations[0].Status.PendingSyncs, s.record("main").Syncs); len(left) != 0 {
		t.Errorf("pending requests = %+v", left)
	}
}

// TestSyncOfADeselectedType checks a request whose type is not selected any more before it is completed.
func TestSyncOfADeselectedType(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.ask("one", false, "configmaps")
	s.replan(func(in *inputs) { in.rules = nil })
	s.git.guard(nil)
	if got := s.answered("one"); len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "no rule selects it any more") {
		t.Errorf("sync = %+v", got)
	}
}

func TestSyncsAreForgottenInTime(t *testing.T) {
	s := newFixture(t)
	s.idle()
	for i := range keptSyncs + 3 {
		s.edit(func(d *v1alpha1.GitDestination) { d.Status.PendingSyncs = nil })
		id := fmt.Sprint(i)
		s.ask(id, false)
		s.answered(id)
	}
	s.edit(func(d *v1alpha1.GitDestination) { d.Status.PendingSyncs = nil })
	if got := s.record("main").Syncs; len(got) != keptSyncs || got[0].ID != "3" {
		t.Errorf("%d requests are reported, the first is %s", len(got), got[0].ID)
	}
}
