// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

// fixture is a store that outlives processes, and the clock.
type fixture struct {
	testing.TB
	kv      clientv3.KV
	clock   *testkit.Clock
	process *testkit.Process
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s := &fixture{TB: t, clock: testkit.NewClock(t), process: &testkit.Process{}}
	s.kv = bolttest.WithWrites(bolttest.NewKV(t), func(_ context.Context, write bolttest.Write) error { return s.process.Write(write.Commit) })
	return s
}

func (s *fixture) changes() *table.Table { return table.New(s.kv, "/test").Table("changes") }

func (s *fixture) rows() *table.Table { return table.New(s.kv, "/test").Table(history.TableName) }

// open begins another process.
func (s *fixture) open() *history.History {
	return history.New(history.Config{Changes: s.changes(), Rows: s.rows(), Namespace: "system", Clock: s.clock})
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// record records a push.
func (s *fixture) record(log *history.History, tip string, changes ...v1alpha1.ChangeSpec) {
	s.Helper()
	s.must(log.Prepare(s.Context(), tip, changes))
	s.must(log.Record(s.Context(), tip))
	s.must(log.Discard(s.Context(), tip))
}

// count returns the number of rows of a table whose keys have a prefix.
func (s *fixture) count(of *table.Table, prefix string) int {
	s.Helper()
	n, err := of.Count(s.Context(), prefix)
	s.must(err)
	return int(n)
}

func named(namespace, name string) history.Object {
	return history.Object{GroupResource: deployments, Namespace: namespace, Name: name}
}

// change returns a change of a Deployment that is in a commit.
func (s *fixture) change(of history.Object, sha, version string) v1alpha1.ChangeSpec {
	return v1alpha1.ChangeSpec{
		Object: v1alpha1.ChangedObject{
			APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespace: of.Namespace, Name: of.Name, UID: "1",
		},
		Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(s.clock.Now()),
		ResourceVersions: v1alpha1.ChangedVersions{First: version, Last: version},
		Author:           &v1alpha1.ChangeAuthor{Username: "jane@example.com", Signal: "Audit"},
		Commits: []v1alpha1.ChangeCommit{{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "ops", Name: "main"}, SHA: sha, Time: metav1.NewTime(testkit.Noon),
			Message: "[UPDATE] " + of.Name, Path: "apps/v1/deployments/" + of.Namespace + "/" + of.Name + ".yaml",
		}},
	}
}

// knows checks the commits of an object, oldest first.
func (s *fixture) knows(log *history.History, o history.Object, want ...string) {
	s.Helper()
	found, err := log.Lookup(s.Context(), o)
	s.must(err)
	var got []string
	for _, change := range slices.Backward(found[o]) {
		for _, commit := range change.Spec.Commits {
			got = append(got, commit.SHA)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("commits of %v = %v, want %v", o, got, want)
	}
}

func TestAcceptedPushIsFound(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	ctx := t.Context()
	web, other := named("shop", "web"), named("bank", "web")
	first := s.change(web, "a1", "7")
	s.clock.Step(time.Second)
	s.must(log.Prepare(ctx, "a2", []v1alpha1.ChangeSpec{first, s.change(web, "a2", "8"), s.change(other, "a2", "9")}))
	s.must(log.Prepare(ctx, "b1", []v1alpha1.ChangeSpec{s.change(web, "b1", "10")}))
	s.must(log.Prepare(ctx, "c1", []v1alpha1.ChangeSpec{s.change(web, "c1", "11")}))
	s.knows(log, web)
	s.must(log.Record(ctx, "a2"))
	s.must(log.Record(ctx, "a2"))
	s.must(log.Discard(ctx, "b1"))
	s.must(log.Record(ctx, "b1"))
	s.knows(log, web, "a1", "a2")
	s.knows(log, other, "a2")
	s.knows(log, named("shop", "we"))
	s.knows(log, history.Object{GroupResource: schema.GroupResource{Resource: "services"}, Namespace: "shop", Name: "web"})
	next := s.open() // another process
	s.must(next.Record(ctx, "c1"))
	for _, tip := range []string{"a2", "c1"} {
		s.must(next.Discard(ctx, tip))
	}
	if n := s.count(s.changes(), ""); n != 4 {
		t.Errorf("%d Changes, want 4", n)
	}
	if n := s.count(s.rows(), "pushes/"); n != 0 {
		t.Errorf("%d prepared rows remain", n)
	}
}

// TestChangesOfClusterScopedObjects are in the namespace of the server.
func TestChangesOfClusterScopedObjects(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	s.record(log, "a", s.change(named("", "web"), "a", "1"))
	s.knows(log, named("", "web"), "a")
	if n := s.count(s.changes(), "system/"); n != 1 {
		t.Errorf("%d Changes in the namespace of the server, want 1", n)
	}
}

// TestOneChangeInSeveralDestinations has destinations on one branch and on others.
func TestOneChangeInSeveralDestinations(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	web := named("shop", "web")
	to := func(destination, sha string) v1alpha1.ChangeSpec {
		change := s.change(web, sha, "7")
		change.Commits[0].DestinationRef.Name = destination
		return change
	}
	s.record(log, "a2", to("one", "a1"), to("two", "a2"))
	s.record(log, "b1", to("three", "b1"))
	s.record(log, "b1", to("three", "b1"))
	s.knows(log, web, "a1", "a2", "b1")
	if n := s.count(s.changes(), ""); n != 1 {
		t.Errorf("%d Changes, want 1", n)
	}
}

// TestNewestFirst checks that names sort in the inverse order of the times of changes.
func TestNewestFirst(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	var want []string
	for i := range 20 {
		s.clock.Step(time.Millisecond << i)
		s.record(log, fmt.Sprint(i), s.change(named("shop", fmt.Sprint("web", i)), "a", "1"))
		want = append(want, fmt.Sprint("web", i))
	}
	var got []string
	for row, err := range s.changes().Scan(t.Context(), "") {
		s.must(err)
		plain, err := history.Decompress(row.Value)
		s.must(err)
		_, after, _ := strings.Cut(string(plain), `"resource":"deployments","namespace":"shop","name":"`)
		name, _, _ := strings.Cut(after, `"`)
		got = append(got, name)
	}
	slices.Reverse(got)
	if !slices.Equal(got, want) {
		t.Errorf("objects by the names of their Changes = %v, want %v", got, want)
	}
}

func TestSubscribersAreCalled(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	var got []history.Object
	cancel := log.Subscribe(func(o history.Object) { got = append(got, o) })
	s.record(log, "a", s.change(named("shop", "web"), "a", "1"), s.change(named("", "web"), "a", "1"))
	cancel()
	s.record(log, "b", s.change(named("shop", "api"), "b", "1"))
	if want := []history.Object{named("shop", "web"), named("", "web")}; !slices.Equal(got, want) {
		t.Errorf("called with %v, want %v", got, want)
	}
}

// TestLimits checks which Changes remain after each limit was exceeded.
func TestLimits(t *testing.T) {
	const many = 1_000_000
	for name, test := range map[string]struct {
		limits history.Limits
		step   time.Duration
		left   int
	}{
		"none":                {history.Limits{Age: time.Hour, Total: many, PerObject: many}, time.Second, 100},
		"age":                 {history.Limits{Age: time.Minute, Total: many, PerObject: many}, time.Second, 61},
		"total":               {history.Limits{Age: time.Hour, Total: 37, PerObject: many}, time.Second, 37},
		"total in one second": {history.Limits{Age: time.Hour, Total: 37, PerObject: many}, time.Millisecond, 37},
		"per object":          {history.Limits{Age: time.Hour, Total: many, PerObject: 10}, time.Second, 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			log := s.open()
			web := named("shop", "web")
			var all []string
			var changes []v1alpha1.ChangeSpec
			for i := range 100 {
				sha := fmt.Sprintf("%040d", i)
				all = append(all, sha)
				s.clock.Step(test.step)
				changes = append(changes, s.change(web, sha, fmt.Sprint(i)))
			}
			s.record(log, "tip", changes...)
			s.must(s.rows().Put(t.Context(), table.Row{Key: "pushes/x/0", Value: []byte("?")}))
			s.must(history.Prune(log, t.Context(), test.limits, s.clock.Now()))
			s.knows(log, web, all[len(all)-test.left:]...)
			if changes := s.count(s.changes(), ""); changes != test.left {
				t.Errorf("%d Changes, want %d", changes, test.left)
			}
			if n := s.count(s.rows(), "pushes/"); n != 0 {
				t.Errorf("%d unreadable prepared rows remain", n)
			}
		})
	}
}

// TestLimitPerObject checks that objects with one name have limits of their own.
func TestLimitPerObject(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	for i := range 5 {
		s.clock.Step(time.Second)
		deployment, service := s.change(named("shop", "web"), fmt.Sprint(i), "1"), s.change(named("shop", "web"), fmt.Sprint("s", i), "2")
		service.Object.APIVersion, service.Object.Resource = "v1", "services"
		s.record(log, fmt.Sprint(i), deployment, service, s.change(named("bank", "web"), fmt.Sprint(i), "3"))
	}
	s.must(history.Prune(log, t.Context(), history.Limits{Age: time.Hour, Total: 1000, PerObject: 2}, s.clock.Now()))
	s.knows(log, named("shop", "web"), "3", "4")
	s.knows(log, named("bank", "web"), "3", "4")
	s.knows(log, history.Object{GroupResource: schema.GroupResource{Resource: "services"}, Namespace: "shop", Name: "web"}, "s3", "s4")
}

// TestPruneWhileChangesAreStored deletes old Changes when the entries of a push are written, and its Changes are not yet.
func TestPruneWhileChangesAreStored(t *testing.T) {
	s := newFixture(t)
	web := named("shop", "web")
	var log *history.History
	pruned := errors.New("it has not been called")
	var during sync.Once
	kv := bolttest.WithWrites(s.kv, func(ctx context.Context, write bolttest.Write) error {
		if strings.HasPrefix(write.Key, "/test/changes/") {
			during.Do(func() {
				pruned = history.Prune(log, ctx, history.Limits{Age: time.Hour, Total: 10_000, PerObject: 400}, s.clock.Now())
			})
		}
		return write.Commit()
	})
	tables := table.New(kv, "/test")
	log = history.New(history.Config{Changes: tables.Table("changes"), Rows: s.rows(), Namespace: "system", Clock: s.clock})
	var changes []v1alpha1.ChangeSpec
	for i := range 500 { // This fills a block.
		s.clock.Step(time.Millisecond)
		changes = append(changes, s.change(web, fmt.Sprint(i), fmt.Sprint(i)))
	}
	s.record(log, "tip", changes...)
	s.must(pruned)
	found, err := log.Lookup(t.Context(), web)
	s.must(err)
	if len(found[web]) != len(changes) {
		t.Errorf("%d Changes are found, want %d", len(found[web]), len(changes))
	}
}

// TestDeathAtEachWrite has a process die at each of its writes, and another one record the same push again.
func TestDeathAtEachWrite(t *testing.T) {
	for write := 1; ; write++ {
		s := newFixture(t)
		dies := s.open()
		var changes []v1alpha1.ChangeSpec
		for i := range 300 {
			changes = append(changes, s.change(named("shop", fmt.Sprint(i)), "a", "1"))
		}
		s.process.Start(write, nil)
		prepared := dies.Prepare(t.Context(), "tip", changes)
		recorded := prepared
		if prepared == nil {
			recorded = cmp.Or(dies.Record(t.Context(), "tip"), dies.Discard(t.Context(), "tip"))
		}
		s.process.Start(0, nil)
		log := s.open()
		s.must(log.Record(t.Context(), "tip"))
		for _, change := range changes {
			want := []string{"a"}
			if prepared != nil {
				want = nil // Then the push has not been made.
			}
			s.knows(log, named("shop", change.Object.Name), want...)
		}
		if recorded == nil {
			if write <= 5 {
				t.Errorf("only %d writes", write-1)
			}
			return
		}
	}
}

func TestCompression(t *testing.T) {
	s := newFixture(t)
	log := s.open()
	s.record(log, "a", s.change(named("shop", "web"), strings.Repeat("a1", 20), "1234567"))
	for row, err := range s.changes().Scan(t.Context(), "") {
		s.must(err)
		packed := row.Value
		plain, err := history.Decompress(packed)
		s.must(err)
		if again := history.Compress(plain); !bytes.Equal(again, packed) || !bytes.Equal(history.Compress(packed), packed) {
			t.Errorf("compressed %q, want %q", again, packed)
		}
		if change := s.change(named("shop", "web"), "a1", "1"); !bytes.Contains(plain, []byte(change.Commits[0].Path)) {
			t.Errorf("decompressed %q", plain)
		}
		t.Logf("%d bytes of %d", len(packed), len(plain))
		for i := range packed {
			damaged := slices.Clone(packed)
			damaged[i] ^= 0xff
			_, _ = history.Decompress(damaged) // It must not panic.
		}
	}
	if plain, err := history.Decompress([]byte("{}")); err != nil || string(plain) != "{}" {
		t.Errorf("a value that is not compressed: %q, %v", plain, err)
	}
}

// TestConcurrentPushes records pushes of several branches at the same time, in two processes one after the other: each Change is found.
func TestConcurrentPushes(t *testing.T) {
	const branches, pushes, most = 4, 60, 7
	s := newFixture(t)
	want := map[history.Object]int{}
	for process := range 2 {
		log := s.open()
		var group sync.WaitGroup
		for branch := range branches {
			group.Go(func() {
				for push := range pushes {
					tip := fmt.Sprintf("%d%d%038d", process, branch, push)
					var changes []v1alpha1.ChangeSpec
					for i := range 1 + push%most {
						changes = append(changes, s.change(named("shop", fmt.Sprint(branch, "-", i)), tip, fmt.Sprint(process, push)))
					}
					if err := errors.Join(log.Prepare(t.Context(), tip, changes), log.Record(t.Context(), tip)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		for branch := range branches {
			for push := range pushes {
				for i := range 1 + push%most {
					want[named("shop", fmt.Sprint(branch, "-", i))]++
				}
			}
		}
	}
	log := s.open()
	found, err := log.Lookup(t.Context(), slices.Collect(maps.Keys(want))...)
	s.must(err)
	for object, n := range want {
		if got := len(found[object]); got != n {
			t.Errorf("%d Changes of %s, want %d", got, object.Name, n)
		}
	}
	if blocks := s.count(s.rows(), "blocks/"); blocks < 4 || blocks > 12 {
		t.Errorf("%d blocks", blocks)
	}
}

// TestDamagedBlocks checks that a block that cannot be decoded hides no other one.
func TestDamagedBlocks(t *testing.T) {
	s := newFixture(t)
	web := named("shop", "web")
	s.record(s.open(), "a", s.change(web, "a", "1"))
	for _, block := range []string{"", "\x04shop", "\x00\x01", "\x04shop\x00\x01", "\x00" + strings.Repeat("a", 39)} {
		s.must(s.rows().Put(t.Context(), table.Row{Key: "blocks/0" + fmt.Sprint(len(block)), Value: []byte(block)}))
	}
	s.clock.Step(time.Second)
	s.record(s.open(), "b", s.change(web, "b", "2"))
	s.knows(s.open(), web, "a", "b")
}
