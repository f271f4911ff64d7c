// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

// notedBranches returns the branches whose pushes have notes.
func (s *fixture) notedBranches() []string {
	s.t.Helper()
	var branches []string
	err := s.services.pushes.scan(s.t.Context(), func(key string, _ []pushNote) {
		branches = append(branches, strings.Split(key, "/")[2])
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return branches
}

// expectNotes checks which branches' pushes have notes.
func (s *fixture) expectNotes(want ...string) {
	s.t.Helper()
	if got := s.notedBranches(); !slices.Equal(got, want) {
		s.t.Errorf("branches with notes = %v, want %v", got, want)
	}
}

// twoBranches returns a fixture with a destination on main and another one on side, with pushed changes of each.
func twoBranches(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, perChange, onBranch("other", "side", "b"))
	s.idle()
	for i := range 2 {
		s.cluster.put(configMap("a"), fmt.Sprint(i))
		s.mirrored()
		s.holds("side", "b", inShop)
	}
	s.idle()
	s.expectNotes("main", "side")
	return s
}

// TestNotesOfDroppedBranches checks that the notes of a branch are removed when no destination has it any more, whether or not the process
// runs then.
func TestNotesOfDroppedBranches(t *testing.T) {
	for name, tt := range map[string]struct {
		drop func(*fixture)
		want []string
	}{
		"a deleted destination": {func(s *fixture) { s.in.destinations = s.in.destinations[:1] }, []string{"main"}},
		"another branch": {func(s *fixture) {
			d := s.in.destinations[1].DeepCopy()
			d.Spec.Branch = "next"
			s.in.destinations = []*v1alpha1.GitDestination{s.in.destinations[0], d}
		}, []string{"main", "next"}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				s := twoBranches(t)
				if restart {
					s.stop()
				}
				tt.drop(s)
				if restart {
					s.start()
				} else {
					s.plan()
				}
				s.cluster.put(configMap("a"), "2")
				s.mirrored()
				if len(tt.want) > 1 {
					s.holds("next", "b", inShop)
				}
				s.idle()
				s.expectNotes(tt.want...)
			})
		}
	}
}

// TestNotesOfPendingChanges checks that the notes of a branch are kept while a change is pending that a push in doubt has carried, and that
// the change is committed once when the destination is in force again.
func TestNotesOfPendingChanges(t *testing.T) {
	s := newFixture(t, perChange, func(s *fixture) { s.retry = time.Hour })
	s.idle()
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	received := s.git.landLate()
	s.cluster.put(configMap("a"), "late")
	<-received
	testkit.EventuallyTrue(t, "the push has failed", func() bool { return s.destination("main").record.current().failure != nil })
	allow := func(branches ...string) {
		r := s.in.repositories[0].DeepCopy()
		r.Spec.AllowedBranches = branches
		s.in.repositories = []*v1alpha1.GitRepoConfig{r}
		s.plan()
	}
	allow("side")
	s.expectNotes("main")
	allow("main")
	s.mirrored()
	s.idle()
	s.eachChangeOnce(configMap("a"))
}

// TestNotesOfDestinationsThatAreNotInForce checks that changes that the remote has accepted are not pushed again if their destination was
// not in force when the next process found their push.
func TestNotesOfDestinationsThatAreNotInForce(t *testing.T) {
	for name, dieAfterPush := range map[string]func(s *fixture, burst func()) (died <-chan struct{}){
		"its rows": func(s *fixture, burst func()) <-chan struct{} {
			s.git.guard(down)
			burst()
			died := s.process.killAt("after push", 1)
			s.git.guard(nil)
			return died
		},
		"its comparison": func(s *fixture, burst func()) <-chan struct{} {
			s.cluster.beforeList(burst)
			died := s.process.killAt("after push", 1)
			s.compareAgain()
			return died
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, perChange, onBranch("other", "main", "b"))
			s.cluster.put(configMap("a"), "before")
			s.mirrored()
			s.idle()
			died := dieAfterPush(s, func() {
				for i := range 5 {
					s.cluster.put(configMap("a"), fmt.Sprint(i))
				}
				s.waitPending("main", 5)
			})
			<-died
			s.stop()
			inForce, without := s.in.destinations[0], s.in.destinations[0].DeepCopy()
			without.Spec.RepoRef.Name = "none"
			s.in.destinations[0] = without
			s.start()
			s.cluster.put(configMap("later"), "1")
			s.holds("main", "b", inShop)
			s.replan(func(in *inputs) { in.destinations[0] = inForce })
			s.mirrored()
			s.idle()
			s.eachChangeOnce(configMap("a"))
		})
	}
}

// TestComparisonsThatAreNoted checks that the notes of pushes have the comparisons that may be newer than rows: the recent ones, and those
// of destinations with pending changes from before. A destination that always has pending changes does not keep all its comparisons.
func TestComparisonsThatAreNoted(t *testing.T) {
	kv := newStoreKV(t, &process{})
	kv.process.start(func() {})
	p := &pushes{
		log: &pushLog{table: storetable.New(kv, "/test").Table("pushes")},
		oldest: func(uid types.UID) time.Time {
			return map[types.UID]time.Time{"pending": time.Now().Add(-2 * time.Hour), "busy": time.Now()}[uid]
		},
	}
	ages := map[types.UID]time.Duration{"pending": time.Hour, "busy": time.Hour, "idle": 2 * compareLag, "recent": 0}
	for uid, age := range ages {
		p.compare([]*notedComparison{{UID: uid, Time: time.Now().Add(-age)}})
	}
	note := &pushNote{}
	if err := p.prepare(t.Context(), gitrepo.Hash{}, note, nil); err != nil {
		t.Fatal(err)
	}
	var noted []string
	for _, comparison := range note.Compared {
		noted = append(noted, string(comparison.UID))
	}
	slices.Sort(noted)
	if want := []string{"pending", "recent"}; !slices.Equal(noted, want) {
		t.Errorf("comparisons of %q are noted, want %q", noted, want)
	}
}

// TestOldComparisonOfARejectedDestination checks that rows older than a comparison do not revert files, although the remote has rejected
// other rows of the destination for so long that only these rows still need the comparison, and the process was restarted meanwhile.
func TestOldComparisonOfARejectedDestination(t *testing.T) {
	s := newFixture(t, perChange, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "before")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.cluster.beforeList(func() {
		for i := range 5 {
			s.cluster.put(configMap("a"), fmt.Sprint(i))
		}
		s.waitPending("main", 5)
	})
	s.cluster.afterList(func() {
		s.cluster.put(configMap("later"), "1")
		s.waitPending("main", 6)
	})
	died := s.process.killAt("after push", 1)
	s.compareAgain()
	<-died
	s.stop()
	s.ageComparisons(compareLag) // The rows are older still.
	s.refuseFolder("clusters/a")
	s.start()
	s.holds("main", "b", inShop)
	s.waitReady("main", v1alpha1.ReasonPushRejected)
	s.waitPending("main", 6)
	s.stop()
	s.git.hook(t, "shop.git", "pre-receive", "")
	s.start()
	s.mirrored()
	s.idle()
	s.eachChangeOnce(configMap("a"))
}

// ageComparisons makes the comparisons in the notes of the main branch older, while no process is running.
func (s *fixture) ageComparisons(age time.Duration) {
	s.t.Helper()
	s.process.start(func() {}) // The store accepts writes again.
	log, key := s.services.pushes, s.destination("main").plan.Load().branch
	notes, _, err := log.read(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, note := range notes {
		for _, comparison := range slices.Concat(note.Compares, note.Compared) {
			comparison.Time = comparison.Time.Add(-age)
		}
	}
	if err := log.write(s.t.Context(), key, nil, notes); err != nil {
		s.t.Fatal(err)
	}
}

// TestUnservedDestinations checks that a destination that is coming into force is never missing among those that pushes to its branch may
// have changes of: its plan is set before the worker serves it.
func TestUnservedDestinations(t *testing.T) {
	r, key := newRegistry(nil, nil, nil), branchKey{branch: "main"}
	for name, p := range map[string]*destinationPlan{
		"not in force":      {problem: conditions.Reason{Code: v1alpha1.ReasonRepositoryNotFound}},
		"of the branch":     {branch: key},
		"of another branch": {branch: branchKey{branch: "side"}},
	} {
		d := &destination{key: types.NamespacedName{Name: name}}
		d.plan.Store(p)
		r.destinations[d.key] = d
	}
	var names []string
	for _, d := range r.unserved(key) {
		names = append(names, d.key.Name)
	}
	slices.Sort(names)
	if want := []string{"not in force", "of the branch"}; !slices.Equal(names, want) {
		t.Errorf("unserved = %q, want %q", names, want)
	}
}

// TestNotesThatCannotBeRemoved checks that notes are removed later if the store returns an error.
func TestNotesThatCannotBeRemoved(t *testing.T) {
	s := twoBranches(t)
	s.kv.failAt("delete pushes", errors.New("the disk is full"))
	s.in.destinations = s.in.destinations[:1]
	s.plan()
	s.expectNotes("main", "side")
	s.kv.fail(nil)
	s.plan()
	s.expectNotes("main")
}

// TestNotesThatAreNeeded checks which notes must be kept for a destination with pending changes.
func TestNotesThatAreNeeded(t *testing.T) {
	of := func(uid types.UID) []*notedComparison { return []*notedComparison{{UID: uid}} }
	for name, tt := range map[string]struct {
		note pushNote
		want bool
	}{
		"its changes":                  {pushNote{Through: map[types.UID]uint64{"pending": 1}}, true},
		"its comparison":               {pushNote{Compares: of("pending")}, true},
		"its comparison a push before": {pushNote{Compared: of("pending")}, true},
		"another destination": {
			pushNote{Through: map[types.UID]uint64{"idle": 1}, Compares: of("idle"), Compared: of("other")}, false,
		},
	} {
		if got := tt.note.isNeededFor(map[types.UID]bool{"pending": true, "idle": false}); got != tt.want {
			t.Errorf("%s: isNeededFor = %v, want %v", name, got, tt.want)
		}
	}
}
