// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// indexed has the commit index cover the ConfigMaps of namespace shop.
func indexed(s *fixture) {
	s.indexScope = &commitindex.Scope{Resources: []schema.GroupResource{configMaps.GroupResource()}, Namespaces: []string{"shop"}}
}

// indexEntries returns the index entries of an object, oldest first.
func (s *fixture) indexEntries(o outbox.Object) []commitindex.Entry {
	s.t.Helper()
	log := commitindex.New(table.New(s.kv, "/test").Table(commitindex.TableName), clock.RealClock{}, 0)
	found, err := log.Lookup(s.t.Context(), commitindex.Object{
		GroupResource: o.GroupVersionResource().GroupResource(), Namespace: o.Namespace, Name: o.Name,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.SortFunc(found, func(a, b commitindex.Entry) int { return commitindex.Compare(a.Last, b.Last) })
	return found
}

// checkIndex checks that the index has exactly the commits that change the file of an object.
func (s *fixture) checkIndex(o outbox.Object) {
	s.t.Helper()
	var got []string
	for _, one := range s.indexEntries(o) {
		got = append(got, one.Commit.SHA)
	}
	want := strings.Fields(s.mustRun("log", "--reverse", "--format=%H", "main",
		"--", "clusters/a/core/v1/configmaps/"+o.Namespace+"/"+o.Name+".yaml"))
	if !slices.Equal(got, want) {
		s.t.Errorf("commits of %s in the index = %v, in the branch = %v", o, got, want)
	}
}

func TestCommitsAreIndexed(t *testing.T) {
	s := newFixture(t, indexed, perChange, func(s *fixture) {
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
	s.checkIndex(configMap("a"))
	found := s.indexEntries(configMap("a"))
	if len(found) != 3 || !found[0].Created || found[1].Created || found[1].Removed || !found[2].Removed {
		t.Fatalf("entries = %+v", found)
	}
	for i, version := range versions {
		if found[i].First != version || found[i].Last != version {
			t.Errorf("commit %d has the versions %s to %s, want %s", i, found[i].First, found[i].Last, version)
		}
	}
	commit := found[1].Commit
	when, err := time.Parse(time.RFC3339, s.mustRun("log", "-1", "--format=%cI", commit.SHA))
	if err != nil {
		t.Fatal(err)
	}
	if commit.Destination.String() != "shop/main" || !commit.Time.Equal(when) || commit.URL != "https://git.example.com/"+commit.SHA ||
		commit.Message != s.mustRun("log", "-1", "--format=%s", commit.SHA) {
		t.Errorf("commit = %+v", commit)
	}
}

// TestCommitsOfSeveralChanges checks the entries of commits with several changes of an object, and of comparisons.
func TestCommitsOfSeveralChanges(t *testing.T) {
	s := newFixture(t, indexed, func(s *fixture) { s.in.destinations[0].Spec.Granularity = v1alpha1.GranularityBatch })
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
	s.checkIndex(configMap("a"))
	found := s.indexEntries(configMap("a"))
	if len(found) >= len(versions) {
		t.Errorf("%d commits of %d changes, want fewer", len(found), len(versions))
	}
	// A push that started before all changes were enqueued may have succeeded with the first ones.
	rest := versions
	for i, commit := range found {
		if len(rest) == 0 || commit.First != rest[0] || commit.Created != (i == 0) {
			t.Fatalf("commit %d of %+v does not start with the first of the versions %s", i, found, rest)
		}
		rest = rest[slices.Index(rest, commit.Last)+1:]
	}
	if len(rest) > 0 {
		t.Errorf("entries = %+v, without the versions %s", found, rest)
	}
	last := versions[len(versions)-1]
	s.stop()
	s.cluster.put(configMap("a"), "while stopped")
	s.cluster.remove(configMap("b"))
	s.start()
	s.mirrored()
	s.idle()
	for _, name := range []string{"a", "b"} {
		s.checkIndex(configMap(name))
		found := s.indexEntries(configMap(name))
		if seed := found[len(found)-1]; seed.First != "" || commitindex.Compare(seed.Last, last) <= 0 || seed.Removed != (name == "b") {
			t.Errorf("entries of %s = %+v", name, seed)
		}
	}
}

// TestCommitsAreKnownAfterFaults checks that every commit is in the index at least once, whatever fails.
func TestCommitsAreKnownAfterFaults(t *testing.T) {
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
		"entries cannot be confirmed": func(s *fixture) {
			s.kv.failAt("put "+commitindex.TableName, bolt.ErrDiskFull)
			s.burst("full", 20)
			s.waitReady("main", v1alpha1.ReasonPushFailed)
			s.kv.failAt("", nil)
		},
		"entries are confirmed, but the note of the push is not deleted": func(s *fixture) {
			s.kv.failAt("delete "+commitindex.TableName, bolt.ErrDiskFull)
			s.burst("full", 20)
			s.waitReady("main", v1alpha1.ReasonPushFailed)
			s.kv.failAt("", nil)
		},
	}
	for _, moment := range []string{
		"before put commits", "after put commits", "after put pushes", "before push", "after push",
		"before delete commits", "after delete commits", "before delete outbox",
	} {
		faults["death "+moment] = func(s *fixture) {
			died := s.process.killAt(moment, 1)
			s.burst("killed", 20)
			<-died
			s.stop()
			s.start()
		}
	}
	for name, strike := range faults {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, indexed, perChange)
			s.burst("before", 10)
			s.mirrored()
			s.idle()
			strike(s)
			s.mirrored()
			s.burst("after", 10)
			s.mirrored()
			s.idle()
			for i := range 10 {
				s.checkIndex(configMap(fmt.Sprint(i)))
			}
		})
	}
}

// TestObjectsOutOfScopeHaveNoEntries checks that objects outside of the scope cause no entries.
func TestObjectsOutOfScopeHaveNoEntries(t *testing.T) {
	s := newFixture(t, perChange, func(s *fixture) {
		s.indexScope = &commitindex.Scope{Resources: []schema.GroupResource{configMaps.GroupResource()}, Namespaces: []string{"dev"}}
	})
	s.burst("unwatched", 20)
	s.mirrored()
	s.idle()
	for _, moment := range []string{"before put commits", "before delete commits"} {
		if n := s.process.times(moment); n > 0 {
			t.Errorf("%s: reached %d times", moment, n)
		}
	}
}
