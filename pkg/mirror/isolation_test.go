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

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/testkit"
)

// refuseFolder has the remote reject pushes that change a folder. Its message contains a control character that hides the text after it.
func (s *fixture) refuseFolder(folder string) {
	s.t.Helper()
	s.git.hook(s.t, "shop.git", "pre-receive", fmt.Sprintf(`while read old new ref; do
  if git log --format= --name-only "$new" --not --all | grep -q '^%s/'; then
    printf 'folder %s is over its \342\200\256quota\n' >&2
    exit 1
  fi
done`, folder, folder))
}

// shared adds destinations, so that there are three on main, in the folders clusters/a, b and c, with one commit for each change.
func shared(s *fixture) {
	onBranch("other", "main", "b")(s)
	onBranch("third", "main", "c")(s)
	for _, d := range s.in.destinations {
		d.Spec.Granularity = v1alpha1.GranularityPerChange
	}
}

// history returns the contents of the file of a ConfigMap in all commits, oldest first.
func (s *fixture) history(folder, name string) []string {
	s.t.Helper()
	var contents []string
	path := folder + "/core/v1/configmaps/shop/" + name + ".yaml"
	for commit := range strings.FieldsSeq(s.mustRun("log", "--reverse", "--format=%H", "main", "--", path)) {
		contents = append(contents, s.mustRun("show", commit+":"+path))
	}
	return contents
}

// eachInOrder expects the file of a ConfigMap to have had all its values, each once and in order.
func (s *fixture) eachInOrder(folder, name string, values []string) {
	s.t.Helper()
	history := s.history(folder, name)
	if len(history) != len(values) {
		s.t.Errorf("file of %s in %s had %d contents, want %d", name, folder, len(history), len(values))
		return
	}
	for i, content := range history {
		if !strings.Contains(content, values[i]) {
			s.t.Errorf("content %d of %s in %s = %q, want %q in it", i, name, folder, content, values[i])
		}
	}
}

// TestFolderThatIsRefused checks that the other destinations of the branch are pushed while one folder is rejected, and that one as soon as
// it is accepted.
func TestFolderThatIsRefused(t *testing.T) {
	for name, between := range map[string]func(*fixture){
		"and let in":    func(*fixture) {},
		"and a restart": func(s *fixture) { s.stop(); s.start() },
		"and the remote fails": func(s *fixture) {
			s.git.guard(down)
			s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
			s.git.guard(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, shared)
			s.cluster.put(configMap("a"), "value-first")
			s.mirrored()
			s.holds("main", "b", inShop)
			s.holds("main", "c", inShop)
			s.idle()
			s.refuseFolder("b")
			values := []string{"value-first"}
			for i := range 5 {
				values = append(values, fmt.Sprintf("value-%d.", i))
				s.cluster.put(configMap("a"), values[i+1])
				s.cluster.put(configMap(fmt.Sprint("new-", i)), "1")
				s.mirrored()
				s.holds("main", "c", inShop)
			}
			ready := s.waitReady("other", v1alpha1.ReasonPushRejected)
			record := s.record("other")
			for _, text := range []string{ready.Message, record.State, record.LastError} {
				if !strings.Contains(text, `folder b is over its \u202equota`) {
					t.Errorf("message = %q, want the escaped message of the remote", text)
				}
			}
			s.waitPending("other", 10)
			s.waitReady("main", v1alpha1.ReasonSucceeded)
			s.waitReady("third", v1alpha1.ReasonSucceeded)
			testkit.EventuallyTrue(t, "the repository accepts pushes, since the branch is written", func() bool {
				return s.registry.rejection(nameOf(s.in.repositories[0])).IsZero()
			})
			between(s)
			s.cluster.put(configMap("a"), "value-last")
			values = append(values, "value-last")
			s.mirrored()
			s.git.hook(t, "shop.git", "pre-receive", "")
			for _, folder := range []string{"clusters/a", "b", "c"} {
				s.holds("main", folder, inShop)
			}
			s.idle()
			s.waitReady("other", v1alpha1.ReasonSucceeded)
			for _, folder := range []string{"clusters/a", "b", "c"} {
				s.eachInOrder(folder, "a", values)
			}
			if got, want := len(s.commits("main")), 3*(1+5+5+1); got != want {
				t.Errorf("%d commits, want %d", got, want)
			}
		})
	}
}

// TestDeathWhileAFolderIsRefused kills the process while a folder is rejected and others are pushed.
func TestDeathWhileAFolderIsRefused(t *testing.T) {
	for _, moment := range []string{"before push", "after push", "after put pushes", "before delete outbox", "after delete outbox"} {
		t.Run(moment, func(t *testing.T) {
			s := newFixture(t, shared)
			s.cluster.put(configMap("a"), "value-first")
			for _, folder := range []string{"clusters/a", "b", "c"} {
				s.holds("main", folder, inShop)
			}
			s.idle()
			s.refuseFolder("b")
			died := s.process.killAt(moment, 3)
			values := []string{"value-first"}
			for i := range 6 {
				values = append(values, fmt.Sprintf("value-%d.", i))
				s.cluster.put(configMap("a"), values[i+1])
				s.cluster.put(configMap(fmt.Sprint(i)), "1")
				s.mirroredOrDead(configMap(fmt.Sprint(i)), died)
			}
			<-died
			s.stop()
			s.start()
			s.mirrored()
			s.holds("main", "c", inShop)
			s.git.hook(t, "shop.git", "pre-receive", "")
			s.holds("main", "b", inShop)
			s.idle()
			for _, folder := range []string{"clusters/a", "b", "c"} {
				history := s.history(folder, "a")
				if last := len(history) - 1; last < 1 || !strings.Contains(history[last], values[len(values)-1]) {
					t.Errorf("history in %s ends with %v", folder, history)
				}
				if slices.Sort(history); len(slices.Compact(history)) != len(history) {
					t.Errorf("a content was written to %s twice", folder)
				}
			}
		})
	}
}

// TestBranchThatTakesNothing checks that the repository is not ready while the remote rejects the files of every destination.
func TestBranchThatTakesNothing(t *testing.T) {
	s := newFixture(t, shared)
	s.cluster.put(configMap("a"), "value-first")
	for _, folder := range []string{"clusters/a", "b", "c"} {
		s.holds("main", folder, inShop)
	}
	s.idle()
	s.git.hook(t, "shop.git", "update", `echo "main is frozen" >&2; exit 1`)
	s.cluster.put(configMap("a"), "value-second")
	for _, name := range []string{"main", "other", "third"} {
		s.waitReady(name, v1alpha1.ReasonPushRejected)
	}
	repository := nameOf(s.in.repositories[0])
	testkit.Eventually(t, "the repository says so", func() error {
		if v := s.registry.rejection(repository); !strings.Contains(v.Message, "branch main: cannot push: ") ||
			!strings.Contains(v.Message, "main is frozen") {
			return fmt.Errorf("message = %q", v.Message)
		}
		return nil
	})
	s.git.hook(t, "shop.git", "update", "")
	for _, folder := range []string{"clusters/a", "b", "c"} {
		s.holds("main", folder, inShop)
		s.eachInOrder(folder, "a", []string{"value-first", "value-second"})
	}
	testkit.EventuallyTrue(t, "the repository is not rejected any more", func() bool { return s.registry.rejection(repository).IsZero() })
}

// TestRefusedDestinationMoves checks that a held destination is retried at once if its folder has changed.
func TestRefusedDestinationMoves(t *testing.T) {
	s := newFixture(t, shared, func(s *fixture) { s.retry = testkit.Timeout })
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.holds("main", "c", inShop)
	s.idle()
	s.refuseFolder("b")
	s.cluster.put(configMap("a"), "2")
	s.waitReady("other", v1alpha1.ReasonPushRejected)
	s.in.destinations[1] = s.in.destinations[1].DeepCopy()
	s.in.destinations[1].Generation++
	s.in.destinations[1].Spec.BaseFolder = "elsewhere"
	s.plan()
	s.holds("main", "elsewhere", inShop)
	s.mirrored()
}

// TestRefusedDestinationIsRetriedOnRequest checks that a held destination is retried at once when a sync is requested.
func TestRefusedDestinationIsRetriedOnRequest(t *testing.T) {
	s := newFixture(t, shared, func(s *fixture) { s.retry = testkit.Timeout })
	s.cluster.put(configMap("a"), "value-first")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.refuseFolder("clusters/a")
	s.cluster.put(configMap("a"), "value-second")
	s.waitReady("main", v1alpha1.ReasonPushRejected)
	s.git.hook(t, "shop.git", "pre-receive", "")
	s.ask("now", false)
	s.mirrored()
	s.answered("now")
	s.eachInOrder("clusters/a", "a", []string{"value-first", "value-second"})
}

// TestRefusedDestinationStaysApart checks that a destination whose files are rejected now and then is pushed separately.
func TestRefusedDestinationStaysApart(t *testing.T) {
	in := world()
	var members []member
	for _, name := range []string{"main", "b", "c"} {
		object := newTestDestination("shop", name, name)
		d := newDestination(object)
		d.plan.Store(&destinationPlan{object: object, repository: in.repositories[0]})
		members = append(members, member{destination: d, plan: d.plan.Load()})
	}
	f := newRefusals(testkit.Timeout)
	refuse := func(of ...member) {
		var batches []*batch
		for _, m := range of {
			batches = append(batches, &batch{member: m, pushed: pushed{commits: 1}})
		}
		var rejected *rejectedError
		if !errors.As(rejectedPush(&gitrepo.Error{Kind: gitrepo.Rejected, Op: "push", Message: "no"}, batches), &rejected) {
			t.Fatal("push does not count as rejected")
		}
		f.record(t.Context(), rejected)
	}
	grouped := func() (sizes []int) {
		able, _ := f.able(members)
		for _, group := range f.groups(able) {
			sizes = append(sizes, len(group))
		}
		return sizes
	}
	for _, step := range []struct {
		name  string
		do    func()
		want  []int
		whole bool
	}{
		{"at first", func() {}, []int{3}, false},
		{"two refused together", func() { refuse(members[0], members[1]) }, []int{1, 1, 1}, false},
		{"one refused alone", func() { refuse(members[1]) }, []int{1, 1}, false},
		{"all refused alone", func() {
			refuse(members[0])
			refuse(members[2])
		}, nil, true},
		{"something has changed", f.retryAll, []int{1, 1, 1}, true},
		{"accepted", func() { f.accepted(members[0].destination) }, []int{1, 1, 1}, false},
		{"accepted a while ago", func() {
			f.of[members[0].destination].apartUntil = members[0].plan.object.CreationTimestamp.Time
			f.accepted(members[0].destination)
		}, []int{1, 1, 1}, false},
		{"and another", func() {
			f.of[members[2].destination].apartUntil = members[0].plan.object.CreationTimestamp.Time
			f.accepted(members[2].destination)
		}, []int{2, 1}, false},
	} {
		step.do()
		if got := grouped(); !slices.Equal(got, step.want) {
			t.Errorf("%s: pushes of %v destinations, want %v", step.name, got, step.want)
		}
		if whole := f.ofAll(members) != nil; whole != step.whole {
			t.Errorf("%s: the whole branch is rejected: %v", step.name, whole)
		}
	}
	if err := rejectedPush(gitrepo.ErrMoved, nil); err != gitrepo.ErrMoved { //nolint:errorlint // the error is not wrapped
		t.Errorf("error after a concurrent push = %v", err)
	}
}

// TestRetriesDuringAnOutage checks that a branch whose remote is down is retried soon after the outage, however long it was,
// and that refused credentials are tried less and less often.
func TestRetriesDuringAnOutage(t *testing.T) {
	for kind, longest := range map[gitrepo.Kind]time.Duration{
		gitrepo.Unreachable: outageRetryMax, gitrepo.Rejected: retryMax,
		gitrepo.Unauthorized: retryMax, gitrepo.NotFound: retryMax,
	} {
		backoff := newBackoff(retryMin)
		err := fmt.Errorf("push: %w", &gitrepo.Error{Kind: kind})
		var last time.Duration
		for range 100 {
			last = retryDelay(&backoff, err)
		}
		if last < longest || last > longest+longest/10 {
			t.Errorf("%s: retried after %s, want %s", kind, last, longest)
		}
	}
}
