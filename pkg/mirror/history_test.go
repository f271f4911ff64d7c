// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// recorded makes the mirror record Changes.
func recorded(s *fixture) { s.recorded = true }

// openHistory returns the history in the store.
func (s *fixture) openHistory() *history.History {
	store := table.New(s.kv, "/test")
	return history.New(history.Config{
		Changes: store.Table("changes"), Rows: store.Table(history.TableName), Namespace: "system", Clock: clock.RealClock{},
	})
}

// changesOf returns the Changes of an object, oldest first.
func (s *fixture) changesOf(o outbox.Object) []v1alpha1.ChangeSpec {
	s.t.Helper()
	object := history.Object{GroupResource: o.GroupVersionResource().GroupResource(), Namespace: o.Namespace, Name: o.Name}
	found, err := s.openHistory().Lookup(s.t.Context(), object)
	if err != nil {
		s.t.Fatal(err)
	}
	var specs []v1alpha1.ChangeSpec
	for _, change := range slices.Backward(found[object]) {
		specs = append(specs, change.Spec)
	}
	return specs
}

// checkChanges checks that an object has exactly one Change for each commit that changes its file, with the right contents.
func (s *fixture) checkChanges(o outbox.Object) {
	s.t.Helper()
	path := "clusters/a/core/v1/configmaps/" + o.Namespace + "/" + o.Name + ".yaml"
	var got []string
	for _, change := range s.changesOf(o) {
		for _, commit := range change.Commits {
			got = append(got, strings.Join([]string{commit.SHA, commit.Path, commit.BlobBefore, commit.BlobAfter}, " "))
		}
		if len(change.Commits) != 1 {
			s.t.Errorf("commits of one change of %s: %+v", o, change.Commits)
		}
	}
	var want []string
	before := ""
	for _, sha := range strings.Fields(s.mustRun("log", "--reverse", "--format=%H", "main", "--", path)) {
		after := s.blob(sha, path)
		want = append(want, strings.Join([]string{sha, path, before, after}, " "))
		before = after
	}
	slices.Sort(got) // Changes of one millisecond are in no particular order.
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("Changes of %s = %v, commits in the branch = %v", o, got, want)
	}
}

// blob returns the hash of a file in a commit; empty if there is none.
func (s *fixture) blob(commit, path string) string {
	s.t.Helper()
	listed := strings.Fields(s.mustRun("ls-tree", "--format=%(objectname)", commit, path))
	return strings.Join(listed, "")
}

func TestChangesAreRecorded(t *testing.T) {
	s := newFixture(t, recorded, perChange, func(s *fixture) {
		s.in.repositories[0].Spec.WebURLTemplate = "https://git.example.com/{sha}"
	})
	s.idle()
	var versions []string
	change := func(value string) {
		s.cluster.put(configMap("a"), value)
		versions = append(versions, s.cluster.get(configMap("a")).GetResourceVersion())
		s.mirrored()
	}
	change("1")
	change("2")
	s.cluster.put(configMap("a"), "2") // without a change of content
	s.cluster.remove(configMap("a"))
	s.mirrored()
	s.idle()
	s.checkChanges(configMap("a"))
	found := s.changesOf(configMap("a"))
	if len(found) != 3 || found[0].Operation != v1alpha1.ChangeCreate || found[1].Operation != v1alpha1.ChangeUpdate ||
		found[2].Operation != v1alpha1.ChangeDelete {
		t.Fatalf("Changes = %+v", found)
	}
	for i, version := range versions {
		if got := found[i].ResourceVersions; got.First != version || got.Last != version {
			t.Errorf("Change %d has the versions %+v, want %s", i, got, version)
		}
	}
	commit := found[1].Commits[0]
	when, err := time.Parse(time.RFC3339, s.mustRun("log", "-1", "--format=%cI", commit.SHA))
	if err != nil {
		t.Fatal(err)
	}
	if commit.DestinationRef != (v1alpha1.NamespacedObjectReference{Namespace: "shop", Name: "main"}) || !commit.Time.Time.Equal(when) || commit.URL != "https://git.example.com/"+commit.SHA ||
		commit.Message != s.mustRun("log", "-1", "--format=%s", commit.SHA) {
		t.Errorf("commit = %+v", commit)
	}
}

// TestCommitsOfSeveralChanges checks the Changes of commits with several changes of an object, and of comparisons.
func TestCommitsOfSeveralChanges(t *testing.T) {
	s := newFixture(t, recorded, func(s *fixture) { s.in.destinations[0].Spec.Granularity = v1alpha1.GranularityBatch })
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	var versions []string
	for i := range 5 {
		s.cluster.put(configMap("a"), fmt.Sprint(i))
		versions = append(versions, s.cluster.get(configMap("a")).GetResourceVersion())
	}
	s.waitPending("main", int64(len(versions)))
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	s.checkChanges(configMap("a"))
	found := s.changesOf(configMap("a"))
	if len(found) >= len(versions) {
		t.Errorf("%d commits of %d changes, want fewer", len(found), len(versions))
	}
	// A push that started before all changes were enqueued may have succeeded with the first ones.
	rest := versions
	for i, change := range found {
		versions := change.ResourceVersions
		if len(rest) == 0 || versions.First != rest[0] || (change.Operation == v1alpha1.ChangeCreate) != (i == 0) {
			t.Fatalf("Change %d of %+v does not start with the first of the versions %s", i, found, rest)
		}
		rest = rest[slices.Index(rest, versions.Last)+1:]
	}
	if len(rest) > 0 {
		t.Errorf("Changes = %+v, without the versions %s", found, rest)
	}
	last := versions[len(versions)-1]
	s.stop()
	s.cluster.put(configMap("a"), "while stopped")
	s.cluster.remove(configMap("b"))
	s.start()
	s.mirrored()
	s.idle()
	for _, name := range []string{"a", "b"} {
		s.checkChanges(configMap(name))
		found := s.changesOf(configMap(name))
		seed := found[len(found)-1]
		newer, err := resourceversion.CompareResourceVersion(seed.ResourceVersions.Last, last)
		if seed.Operation != v1alpha1.ChangeCompared || seed.ResourceVersions.First != "" || err != nil || newer <= 0 ||
			(seed.Commits[0].BlobAfter == "") != (name == "b") {
			t.Errorf("last Change of %s = %+v, error %v", name, seed, err)
		}
	}
}

// TestChangesAfterFaults checks that every commit has its Changes exactly once, whatever fails.
func TestChangesAfterFaults(t *testing.T) {
	faults := map[string]func(*fixture){
		"an answer is lost": func(s *fixture) {
			s.git.loseResponses.Store(1)
			s.burst("lost", 20)
		},
		"a push lands late": func(s *fixture) {
			s.git.guard(down)
			s.burst("late", 20)
			<-s.git.landLate()
		},
		"a push lands late, and the process has died": func(s *fixture) {
			s.git.guard(down)
			s.burst("late", 20)
			<-s.git.landLate()
			s.stop()
			s.start()
		},
		"others push": func(s *fixture) {
			other := s.otherWriter()
			for i := range 5 {
				s.burst(fmt.Sprint("beside theirs ", i), 5)
				if err := other.edit("theirs", other.write("README.md", fmt.Sprint(i))); err != nil {
					s.t.Error(err)
				}
			}
		},
		"Changes cannot be recorded": func(s *fixture) {
			s.kv.failAt("put changes", bolt.ErrDiskFull)
			s.burst("full", 20)
			s.waitReady("main", v1alpha1.ReasonPushFailed)
			s.kv.failAt("", nil)
		},
		"Changes cannot be indexed": func(s *fixture) {
			s.kv.failAt("put "+history.TableName, bolt.ErrDiskFull)
			s.burst("full", 20)
			s.waitReady("main", v1alpha1.ReasonPushFailed)
			s.kv.failAt("", nil)
		},
	}
	for _, moment := range []string{
		"before put history 1", "after put history 1", "after put pushes 1", "before push 1", "after push 1", "before put history 2",
		"after put history 2", "before put changes 1", "after put changes 1", "before delete history 1",
		"after delete history 1", "before delete outbox 1",
	} {
		faults["death "+moment] = func(s *fixture) {
			step, number, _ := cutLast(moment)
			n, err := strconv.Atoi(number)
			if err != nil {
				s.t.Fatal(err)
			}
			died := s.process.killAt(step, n)
			s.burst("killed", 20)
			<-died
			s.stop()
			s.start()
		}
	}
	for name, strike := range faults {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, recorded, perChange)
			s.burst("before", 10)
			s.mirrored()
			s.idle()
			strike(s)
			s.mirrored()
			s.burst("after", 10)
			s.mirrored()
			s.idle()
			for i := range 10 {
				s.checkChanges(configMap(fmt.Sprint(i)))
			}
		})
	}
}

// cutLast splits a text at its last space.
func cutLast(text string) (before, after string, found bool) {
	at := strings.LastIndex(text, " ")
	return text[:at], text[at+1:], at >= 0
}

func TestAuthorOfChange(t *testing.T) {
	for signal, want := range map[attribution.Signal]v1alpha1.AttributionSignal{
		attribution.Audit: v1alpha1.SignalAudit, attribution.Admission: v1alpha1.SignalAdmission,
	} {
		got := authorOf(attribution.Author{Signal: signal, Actor: attribution.Actor{Username: "jane"}})
		if got == nil || got.Username != "jane" || got.Signal != string(want) {
			t.Errorf("author known by %s = %+v, want the signal %s", signal, got, want)
		}
	}
	if got := authorOf(attribution.Author{Signal: attribution.ManagedFields, Manager: "helm"}); got != nil {
		t.Errorf("author without a user = %+v, want none", got)
	}
}
