// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestDeathAtEveryMoment kills the process at every externally visible step, in the middle of changes, and starts another.
func TestDeathAtEveryMoment(t *testing.T) {
	for _, moment := range []string{
		"before put outbox", "after put outbox", "before put pushes", "after put pushes",
		"before push", "after push", "before delete outbox", "after delete outbox",
	} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, perChange)
			s.cluster.put(configMap("old"), "1")
			s.mirrored()
			s.idle()
			died := s.process.killAt(moment, 2)
			for i := range 10 {
				s.cluster.put(configMap("a"), fmt.Sprint(i))
				s.cluster.put(configMap(fmt.Sprint(i)), "1")
				s.mirroredOrDead(configMap(fmt.Sprint(i)), died)
			}
			s.cluster.remove(configMap("old"))
			<-died
			s.stop()
			s.cluster.put(configMap("while dead"), "1")
			s.cluster.remove(configMap("3"))
			s.start()
			s.mirrored()
			s.idle()
			s.eachChangeOnce(configMap("a"))
		})
	}
}

// mirroredOrDead waits for the file of an object, or until the process has died.
func (s *fixture) mirroredOrDead(o outbox.Object, died <-chan struct{}) {
	s.t.Helper()
	testkit.Eventually(s.t, o.String(), func() error {
		select {
		case <-died:
			return nil
		default:
		}
		_, err := s.run("cat-file", "-e", "main:clusters/a/core/v1/configmaps/shop/"+o.Name+".yaml")
		return err
	})
}

// TestLatePush has a push outlive its process or its timeout: the Git server completes it while the next push is in progress.
func TestLatePush(t *testing.T) {
	for name, between := range map[string]func(*fixture){
		"killed":  func(s *fixture) { s.stop(); s.start() },
		"retried": func(*fixture) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, perChange)
			s.cluster.put(configMap("first"), "1")
			s.mirrored()
			s.idle()
			s.git.guard(down)
			for i := range 5 {
				s.cluster.put(configMap("a"), fmt.Sprint(i))
			}
			testkit.Eventually(t, "rows", func() error {
				if n := s.record("main").PendingChanges; n != 5 {
					return fmt.Errorf("%d rows pending, want 5", n)
				}
				return nil
			})
			<-s.git.landLate()
			between(s)
			s.mirrored()
			s.cluster.put(configMap("a"), "last")
			s.mirrored()
			s.idle()
			s.eachChangeOnce(configMap("a"))
			// A comparison meanwhile includes the changes before it, in one commit.
			if n := len(s.commits("main")); n > 1+6 {
				t.Errorf("%d commits for 7 changes", n)
			}
		})
	}
}

// TestComparisonOutlivesTheProcess checks that rows older than a comparison do not revert files, although the process has died before it
// removed them.
func TestComparisonOutlivesTheProcess(t *testing.T) {
	for _, moment := range []string{"after push", "before delete outbox"} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, perChange)
			s.cluster.put(configMap("b"), "1")
			s.mirrored()
			s.idle()
			s.cluster.mu.Lock()
			s.cluster.before = func() {
				for i := range 5 {
					s.cluster.put(configMap("a"), fmt.Sprint(i))
					s.cluster.put(configMap("b"), fmt.Sprint("again ", i))
				}
			}
			var died <-chan struct{}
			s.cluster.after = func() {
				testkit.Eventually(t, "rows", func() error {
					if n := s.destination("main").queue.Backlog().Rows; n != 10 {
						return fmt.Errorf("%d rows pending, want 10", n)
					}
					return nil
				})
				died = s.process.killAt(moment, 1)
			}
			s.cluster.mu.Unlock()
			s.ask("now", false)
			testkit.Eventually(t, "the comparison", func() error {
				commits := s.commits("main")
				if commits[len(commits)-1] != "[SEED] 2 objects: 1 created, 1 updated" {
					return fmt.Errorf("commits = %q", commits)
				}
				return nil
			})
			<-died
			s.stop()
			s.cluster.put(configMap("b"), "while dead")
			s.start()
			s.mirrored()
			s.idle()
			s.eachChangeOnce(configMap("a"))
			s.eachChangeOnce(configMap("b"))
			if n := len(s.commits("main")); n != 3 {
				t.Errorf("%d commits: %q", n, s.commits("main"))
			}
		})
	}
}

// TestPartOfAComparisonOutlivesTheProcess checks that rows older than a part of a comparison do not revert its files if the comparison does
// not end, because the process dies or another writer is faster. The rows of other objects, and those of deletions, are pushed.
func TestPartOfAComparisonOutlivesTheProcess(t *testing.T) {
	// The first part of the comparison has the first two objects.
	const objects, part, changes = 6, 2, 5
	deleted := configMap("00") // between the first two in the order of a list
	for _, killed := range []bool{true, false} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			// No row is held back, because a comparison would overtake it.
			s := newFixture(t, perChange, func(s *fixture) { s.limits.MaxWait = 0 })
			s.cluster.put(deleted, "before")
			for i := range objects {
				s.cluster.put(configMap(fmt.Sprint(i)), "before")
			}
			s.mirrored()
			s.idle()
			s.addTheirs()
			s.cluster.put(configMap("lost"), "1") // One change whose push loses once makes the parts small.
			s.mirrored()
			s.idle()
			s.cluster.beforeList(func() {
				s.cluster.remove(deleted)
				for change := range changes {
					for i := range objects {
						s.cluster.put(configMap(fmt.Sprint(i)), fmt.Sprint(change))
					}
				}
				s.waitPending("main", objects*changes+1)
			})
			var ended <-chan struct{}
			if killed {
				ended = s.process.killAt("after push", 1)
			} else {
				ended = s.overtakenAt(2, "clusters/a/NOTES.txt") // The push does not follow a change of its folder.
			}
			s.compareAgain()
			<-ended
			if killed {
				s.stop()
				s.start()
			}
			s.mirrored()
			s.idle()
			count := map[string]int{}
			for _, subject := range s.commits("main") {
				count[subject]++
			}
			for i := range objects {
				s.eachChangeOnce(configMap(fmt.Sprint(i)))
				want := changes
				if i < part {
					want = 0
				}
				if n := count["[UPDATE] "+configMap(fmt.Sprint(i)).String()]; n != want {
					t.Errorf("%d commits of single changes of %d, want %d", n, i, want)
				}
			}
			if n := count["[DELETE] "+deleted.String()]; n != 1 {
				t.Errorf("%d commits of the deletion of %s", n, deleted)
			}
		})
	}
}

// overtakenAt has another writer push a file before the nth push arrives, and closes the channel then.
func (s *fixture) overtakenAt(n int32, path string) <-chan struct{} {
	overtaken := make(chan struct{})
	var pushes atomic.Int32
	s.git.guard(func(_ http.ResponseWriter, r *http.Request) bool {
		if isPush(r) && pushes.Add(1) == n {
			s.commitTheirs("theirs", path, "faster")
			close(overtaken)
		}
		return true
	})
	return overtaken
}

func TestRestartMakesNoCommit(t *testing.T) {
	s := newFixture(t)
	for i := range 20 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.mirrored()
	s.idle()
	tip := s.mustRun("rev-parse", "main")
	for range 2 {
		s.stop()
		s.start()
		s.idle()
	}
	if got := s.mustRun("rev-parse", "main"); got != tip {
		t.Errorf("commits after a restart:\n%s", s.mustRun("log", tip+"..main"))
	}
}

// TestChangesBeforeTheBranchIsReadKeepTheirCommits checks that rows which arrive before the branch has been read are not removed as part of
// the last push of the previous process.
func TestChangesBeforeTheBranchIsReadKeepTheirCommits(t *testing.T) {
	s := newFixture(t, perChange)
	s.idle()
	for i := range 3 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.mirrored()
	s.idle()
	s.stop()
	s.cluster.setRefused(configMaps, errors.New("later"))
	s.git.guard(down)
	s.start()
	for i := range 3 {
		s.cluster.put(configMap(fmt.Sprint(i)), "2")
	}
	testkit.Eventually(t, "rows", func() error {
		if n := s.record("main").PendingChanges; n != 3 {
			return fmt.Errorf("%d rows pending, want 3", n)
		}
		return nil
	})
	s.git.guard(nil)
	s.mirrored()
	s.cluster.setRefused(configMaps, nil)
	if got := strings.Join(s.commits("main")[3:], ", "); strings.Count(got, "[UPDATE]") != 3 {
		t.Errorf("commits = %s", got)
	}
}

func TestBurstIntoAHeldWorker(t *testing.T) {
	s := newFixture(t)
	s.addTheirs()
	s.idle()
	s.git.guard(down)
	for i := range 5000 {
		s.cluster.put(configMap(fmt.Sprint(i%2500)), fmt.Sprint(i))
	}
	testkit.Eventually(t, "rows", func() error {
		if n := s.record("main").PendingChanges; n != 5000 {
			return fmt.Errorf("%d rows pending, want 5000", n)
		}
		return nil
	})
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	s.unharmed()
	if n := len(s.commits("main")); n > 5000/200+2+len(theirFiles) {
		t.Errorf("%d commits for 5000 changes without an author, with 200 files per push", n)
	}
}

func TestStoreThatIsFull(t *testing.T) {
	s := newFixture(t)
	s.idle()
	s.cluster.put(configMap("before"), "1")
	s.mirrored()
	s.idle()
	s.kv.fail(fmt.Errorf("write: %w", bolt.ErrDiskFull))
	s.cluster.put(configMap("a"), "1")
	testkit.Eventually(t, "the reason", func() error {
		if ready := s.ready("main"); !strings.Contains(ready.Message, bolt.ErrDiskFull.Error()) {
			return fmt.Errorf("message = %q", ready.Message)
		}
		return nil
	})
	for i := range 3000 { // more than the memory holds: the watch must wait
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.kv.fail(nil)
	s.mirrored()
	s.idle()
	s.waitReady("main", "Succeeded")
}

// TestStoreThatFailsWhilePushing checks that a store failure when a push is recorded, or when its rows are removed, delays the push or has
// it recovered, but never repeats it.
func TestStoreThatFailsWhilePushing(t *testing.T) {
	for _, moment := range []string{"put pushes", "delete outbox"} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, perChange)
			s.idle()
			s.kv.failAt(moment, bolt.ErrDiskFull)
			for i := range 5 {
				s.cluster.put(configMap("a"), fmt.Sprint(i))
			}
			s.waitReady("main", "PushFailed")
			s.kv.failAt("", nil)
			s.mirrored()
			s.idle()
			s.eachChangeOnce(configMap("a"))
		})
	}
}

// TestStoreWhoseResponsesAreLost checks that rows whose write seems to have failed are written again, and not pushed before.
func TestStoreWhoseResponsesAreLost(t *testing.T) {
	s := newFixture(t, perChange)
	s.idle()
	s.git.guard(down)
	s.cluster.put(configMap("b"), "1")
	rows := func(want func(int64) bool) {
		t.Helper()
		testkit.Eventually(t, "rows", func() error {
			n, err := s.shared.Store.Table("outbox").Count(t.Context(), "")
			if err == nil && !want(n) {
				err = fmt.Errorf("%d rows", n)
			}
			return err
		})
	}
	rows(func(n int64) bool { return n == 1 })
	s.kv.loseResponses("put outbox", errors.New("timeout"))
	for i := range 5 {
		s.cluster.put(configMap("a"), fmt.Sprint(i))
	}
	rows(func(n int64) bool { return n > 1 })
	s.git.guard(nil)
	s.mirroredOne(configMap("b"))
	attempts := s.kv.failures.Load()
	testkit.Eventually(t, "another attempt", func() error {
		if s.kv.failures.Load() < attempts+2 {
			return errors.New("none")
		}
		return nil
	})
	s.kv.fail(nil)
	s.mirrored()
	rows(func(n int64) bool { return n == 0 })
	s.eachChangeOnce(configMap("a"))
}

// TestObjectLargerThanAnyRow checks that an object that is too large for a row does not block the others.
func TestObjectLargerThanAnyRow(t *testing.T) {
	s := newFixture(t)
	s.idle()
	s.cluster.put(configMap("large"), strings.Repeat("x y ", 1<<19))
	s.cluster.put(configMap("small"), "1")
	s.mirrored()
	s.idle()
}
