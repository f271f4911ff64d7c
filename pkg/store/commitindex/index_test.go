// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	shop        = commitindex.Scope{Resources: []schema.GroupResource{deployments}, Namespaces: []string{"shop"}}
)

// fixture is a store that outlives processes, and the clock.
type fixture struct {
	testing.TB
	kv      clientv3.KV
	clock   *testkit.Clock
	process *testkit.Process
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{TB: t, clock: testkit.NewClock(t), process: &testkit.Process{}}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return s.process.Write(write.Commit) })
	return s
}

func (s *fixture) table() *table.Table {
	return table.New(s.kv, "/test").Table(commitindex.TableName)
}

// open begins another process.
func (s *fixture) open(capacity int) *commitindex.Index {
	s.Helper()
	log := commitindex.New(s.table(), s.clock, capacity)
	s.must(log.Load(s.Context()))
	return log
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// run runs an index, and returns the objects that it publishes.
func (s *fixture) run(log *commitindex.Index) (published <-chan []commitindex.Object, stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	out, done := make(chan []commitindex.Object, 100), make(chan struct{})
	go func() {
		defer close(done)
		log.Run(ctx, func(objects []commitindex.Object) { out <- objects })
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.Cleanup(stop)
	return out, stop
}

// rows counts the rows of a log but for its scope.
func (s *fixture) rows() (n int64) {
	s.Helper()
	for _, prefix := range []string{"pushes/", "objects/"} {
		count, err := s.table().Count(s.Context(), prefix)
		s.must(err)
		n += count
	}
	return n
}

func web(namespace string) commitindex.Object {
	return commitindex.Object{GroupResource: deployments, Namespace: namespace, Name: "web"}
}

// commit holds an object as of a resourceVersion.
func commit(o commitindex.Object, sha, version string) commitindex.Entry {
	return commitindex.Entry{Object: o, First: version, Last: version, Commit: commitindex.Commit{
		Destination: types.NamespacedName{Namespace: "ops", Name: "main"}, SHA: sha,
		Time: testkit.Noon, Message: "[UPDATE] web", URL: "https://git.example/" + sha,
	}}
}

// known are the commits of an object, in alphabetical order.
func (s *fixture) known(log *commitindex.Index, o commitindex.Object) []string {
	s.Helper()
	entries, err := log.Lookup(s.Context(), o)
	s.must(err)
	var out []string
	for _, one := range entries {
		out = append(out, one.Commit.SHA)
	}
	slices.Sort(out)
	return out
}

func (s *fixture) knows(log *commitindex.Index, o commitindex.Object, want ...string) {
	s.Helper()
	if got := s.known(log, o); !slices.Equal(got, want) {
		s.Errorf("of %v is known %v, want %v", o, got, want)
	}
}

func TestAcceptedPushIsFound(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	ctx := t.Context()
	given := commit(web("shop"), "a1", "7")
	s.must(log.Prepare(ctx, "a2", []commitindex.Entry{given, commit(web("shop"), "a2", "8"), commit(web("bank"), "a2", "9")}))
	s.must(log.Prepare(ctx, "b1", []commitindex.Entry{commit(web("shop"), "b1", "10")}))
	s.must(log.Prepare(ctx, "c1", []commitindex.Entry{commit(web("shop"), "c1", "11")}))
	s.knows(log, web("shop"))
	s.must(log.Record(ctx, "a2"))
	s.must(log.Record(ctx, "a2"))
	s.must(log.Discard(ctx, "b1"))
	s.must(log.Record(ctx, "b1"))
	s.knows(log, web("shop"), "a1", "a2")
	s.knows(log, web("bank"), "a2")
	s.knows(log, commitindex.Object{GroupResource: deployments, Namespace: "shop", Name: "we"})
	entries, err := log.Lookup(ctx, web("shop"))
	s.must(err)
	if entries[0] != given {
		t.Errorf("known is %+v, given was %+v", entries[0], given)
	}
	s.must(s.open(0).Record(ctx, "c1")) // another process
	s.knows(log, web("shop"), "a1", "a2", "c1")
	if rows := s.rows(); rows != 4 {
		t.Errorf("%d rows, want 4", rows)
	}
}

func TestCommitsArePublished(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	log.SetScope(shop)
	published, _ := s.run(log)
	var got []commitindex.Object
	for i, name := range []string{"api", "web"} {
		tip := fmt.Sprint("tip", i)
		o := commitindex.Object{GroupResource: deployments, Namespace: "shop", Name: name}
		s.clock.Eventually("published "+name, func() error {
			// Commits added before Run starts are indexed, but not published.
			s.must(log.Prepare(t.Context(), tip, []commitindex.Entry{commit(o, tip, "1")}))
			s.must(log.Record(t.Context(), tip))
			select {
			case objects := <-published:
				got = append(got, objects...)
			default:
			}
			if !slices.Contains(got, o) {
				return fmt.Errorf("published %v", got)
			}
			return nil
		})
	}
}

func TestScopeOutlivesTheProcess(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	if log.InScope(web("shop")) {
		t.Error("wanted although nobody cares for it")
	}
	log.SetScope(shop)
	_, stop := s.run(log)
	s.clock.Eventually("the scope is saved", func() error {
		if !s.open(0).InScope(web("shop")) {
			return errors.New("it is not")
		}
		return nil
	})
	stop()
	again := s.open(0)
	secret := commitindex.Object{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: "shop", Name: "web"}
	if again.InScope(web("bank")) || again.InScope(secret) {
		t.Error("wanted although nobody cares for it")
	}
	again.SetScope(commitindex.Scope{Resources: shop.Resources, Namespaces: []string{"bank"}})
	if again.InScope(web("shop")) || !again.InScope(web("bank")) {
		t.Error("the scope is that of before")
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		capacity int
		before   func(*fixture, *commitindex.Index)
		left     []string
	}{
		"the newest of one object": {
			before: func(s *fixture, log *commitindex.Index) {
				var entries []commitindex.Entry
				for i := range commitindex.MaxPerObject + 3 {
					entries = append(entries, commit(web("shop"), fmt.Sprintf("%04d", 1000-i), fmt.Sprint(1000-i)))
				}
				s.must(log.Prepare(s.Context(), "tip", entries))
				s.must(log.Record(s.Context(), "tip"))
			},
			left: numbers(1001-commitindex.MaxPerObject, 1000),
		},
		"the newest of all": {
			capacity: 10,
			before: func(s *fixture, log *commitindex.Index) {
				for i := range 13 {
					s.clock.Step(time.Second)
					s.must(log.Prepare(s.Context(), "tip", []commitindex.Entry{commit(web("shop"), fmt.Sprintf("%04d", i), "1")}))
					s.must(log.Record(s.Context(), "tip"))
				}
			},
			left: numbers(3, 12),
		},
		"the young": {
			before: func(s *fixture, log *commitindex.Index) {
				s.must(log.Prepare(s.Context(), "lost", []commitindex.Entry{commit(web("shop"), "lost", "1")}))
				for _, sha := range []string{"old", "young"} {
					s.must(log.Prepare(s.Context(), sha, []commitindex.Entry{commit(web("shop"), sha, "1")}))
					s.must(log.Record(s.Context(), sha))
					s.clock.Step(commitindex.MaxAge/2 + 2*time.Minute)
				}
			},
			left: []string{"young"},
		},
		"what is wanted": {
			before: func(s *fixture, log *commitindex.Index) {
				s.must(log.Prepare(s.Context(), "tip", []commitindex.Entry{commit(web("shop"), "a", "1"), commit(web("bank"), "a", "1")}))
				s.must(log.Record(s.Context(), "tip"))
			},
			left: []string{"a"},
		},
		"what can be read": {
			before: func(s *fixture, _ *commitindex.Index) {
				s.must(s.table().Put(s.Context(), table.Row{Key: "objects/shop/x", Value: []byte("?")},
					table.Row{Key: "pushes/x/0", Value: []byte("?")}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			log := s.open(test.capacity)
			log.SetScope(shop)
			test.before(s, log)
			s.run(log)
			s.clock.Eventually("it is trimmed", func() error {
				if rows := s.rows(); rows != int64(len(test.left)) {
					return fmt.Errorf("%d rows", rows)
				}
				return nil
			})
			s.knows(log, web("shop"), test.left...)
		})
	}
}

// numbers are those from one to another, as commits are called here.
func numbers(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("%04d", i))
	}
	return out
}

// TestEntriesAreKeptUntilTheScopeIsSet has entries of an earlier process.
func TestEntriesAreKeptUntilTheScopeIsSet(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	s.must(log.Prepare(t.Context(), "tip", []commitindex.Entry{commit(web("shop"), "a", "1")}))
	s.must(log.Record(t.Context(), "tip"))
	s.must(s.table().Put(t.Context(), table.Row{Key: "pushes/x/0", Value: []byte("?")}))
	s.run(log)
	s.clock.Eventually("it is trimmed", func() error {
		if rows := s.rows(); rows > 1 {
			return fmt.Errorf("%d rows", rows)
		}
		return nil
	})
	s.knows(log, web("shop"), "a")
}

func TestMessagesAreCut(t *testing.T) {
	s := newFixture(t)
	log := s.open(0)
	long := commit(web("shop"), "a", "1")
	long.Commit.Message = strings.Repeat("ä", 1000)
	s.must(log.Prepare(t.Context(), "tip", []commitindex.Entry{long}))
	s.must(log.Record(t.Context(), "tip"))
	entries, err := log.Lookup(t.Context(), web("shop"))
	s.must(err)
	if got := entries[0].Commit.Message; got != strings.Repeat("ä", 256) {
		t.Errorf("the message has %d bytes", len(got))
	}
}

// TestDeathAtEachWrite has a process die at each of its writes, and another one record the same commits again.
func TestDeathAtEachWrite(t *testing.T) {
	for write := 1; ; write++ {
		s := newFixture(t)
		dies := commitindex.New(s.table(), s.clock, 0)
		var entries []commitindex.Entry
		for i := range 120 {
			entries = append(entries, commit(commitindex.Object{GroupResource: deployments, Namespace: "shop", Name: fmt.Sprint(i)}, "a", "1"))
		}
		s.process.Start(write, nil)
		prepared := dies.Prepare(t.Context(), "tip", entries)
		recorded := prepared
		if prepared == nil {
			recorded = dies.Record(t.Context(), "tip")
		}
		s.process.Start(0, nil)
		log := s.open(0)
		s.must(log.Record(t.Context(), "tip"))
		for _, one := range entries {
			want := []string{"a"}
			if prepared != nil {
				want = nil // Then the push has not been made.
			}
			s.knows(log, one.Object, want...)
		}
		if recorded == nil {
			if write <= 5 {
				t.Errorf("only %d writes", write-1)
			}
			return
		}
	}
}
