// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/testkit"
)

// inNamespace names a ConfigMap of a namespace.
func inNamespace(namespace, name string) outbox.Object {
	object := configMap(name)
	object.Namespace = namespace
	return object
}

// selectNamespaces has a fixture with byClusterRule compare a number of namespaces in one round. The last one has a ConfigMap.
func (s *fixture) selectNamespaces(n int) (selected func(outbox.Object) bool) {
	s.t.Helper()
	name := func(i int) string { return fmt.Sprintf("preview-of-branch-%06d", i) }
	for i := range n + 1 {
		s.cluster.setNamespace(watch.Namespace{Name: name(i)})
	}
	s.cluster.put(inNamespace(name(n), "a"), "1")
	s.idle()
	relabel := func(i int) { s.relabel(watch.Namespace{Name: name(i), Labels: labels.Set{"team": "shop"}}) }
	// The others enter the selection while the first one is compared, so that the next comparison has all of them.
	s.cluster.beforeList(func() {
		for i := range n {
			relabel(i + 1)
		}
	})
	relabel(0)
	return func(o outbox.Object) bool { return o.Namespace == name(n) }
}

// TestRefusedComparisonOfManyNamespaces checks that a comparison of many namespaces is pushed, although the remote has refused it many times.
func TestRefusedComparisonOfManyNamespaces(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart %v", restart), func(t *testing.T) {
			s := newFixture(t, byClusterRule, func(s *fixture) { s.in.destinations[0].UID = "6f1d4f0e-8a0f-4a0e-9c1e-2f6f5f0d7b11" })
			s.cluster.put(configMap("a"), "1")
			s.mirrored()
			s.idle()
			s.git.hook(t, "shop.git", "pre-receive", "exit 1")
			before := s.process.times("after push")
			selected := s.selectNamespaces(500)
			for refused := range 20 {
				testkit.Eventually(t, "a refused push", func() error {
					s.registry.retryBranches(s.destination("main").plan.Load().branch.repository)
					if n := s.process.times("after push") - before; n <= refused {
						return fmt.Errorf("%d refused pushes, want %d: %s", n, refused+1, s.ready("main").Message)
					}
					return nil
				})
			}
			if restart {
				s.stop()
				s.start()
			}
			s.git.hook(t, "shop.git", "pre-receive", "")
			testkit.Eventually(t, "a push", func() error {
				s.registry.retryBranches(s.destination("main").plan.Load().branch.repository)
				files, err := s.files("main")
				if err == nil && len(files) != 2 {
					err = fmt.Errorf("%d files, want 2: %s", len(files), s.ready("main").Message)
				}
				return err
			})
			s.idle()
			s.holds("main", "clusters/a", func(o outbox.Object) bool { return inShop(o) || selected(o) })
		})
	}
}

// TestManyNamespacesInOneRound checks that the comparison of namespaces that are selected at once is pushed, however many they are.
func TestManyNamespacesInOneRound(t *testing.T) {
	s := newFixture(t, byClusterRule)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	selected := s.selectNamespaces(10_000)
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return inShop(o) || selected(o) })
	s.idle()
}

// newPushes returns pushes that a process records in a store.
func newPushes(t *testing.T, kv *storeKV, oldest func(types.UID) time.Time) *pushes {
	t.Helper()
	kv.process.start(func() {})
	p := &pushes{log: &pushLog{table: storetable.New(kv, "/test").Table("pushes")}, oldest: oldest}
	if _, err := p.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// nonePending reports that no change is pending.
func nonePending(types.UID) time.Time { return time.Time{} }

// comparisonOf returns a comparison of a number of namespaces.
func comparisonOf(uid types.UID, namespaces int) *notedComparison {
	listed := map[watch.Watch]position{}
	for i := range namespaces {
		listed[watch.Watch{Resource: configMaps, Namespace: fmt.Sprintf("preview-%06d", i)}] = position{resourceVersion: "100", through: "x"}
	}
	return &notedComparison{UID: uid, Time: time.Now(), listed: listed}
}

// pushing notes a push with a tip, and what it compares.
func (p *pushes) pushing(ctx context.Context, tip byte, comparisons ...*notedComparison) (pushNote, error) {
	note := pushNote{Tip: gitrepo.Hash{tip}, Compares: comparisons}
	return note, p.prepare(ctx, gitrepo.Hash{}, &note, nil)
}

// TestDeathWhileNotingManyScopes kills the process at each write of a note whose scopes are more than one transaction has. The next process
// finds the note with all scopes or not at all, and those of the push before in any case, and removes what no note refers to.
func TestDeathWhileNotingManyScopes(t *testing.T) {
	before, refused, last := comparisonOf("before", 1500), comparisonOf("refused", 10), comparisonOf("last", 20_000)
	for moment, writes := range map[string]int{
		"before put pushes": 3, "after put pushes": 3, "before delete pushes": 1, "after delete pushes": 1,
	} {
		for n := 1; n <= writes; n++ {
			kv := newStoreKV(t, &process{})
			p := newPushes(t, kv, nonePending)
			before.ID, refused.ID, last.ID = "", "", ""
			accepted, err := p.pushing(t.Context(), 1, before)
			p.passed(t.Context(), accepted)
			p.compare(accepted.Compares)
			rejected, again := p.pushing(t.Context(), 2, refused)
			if err = errors.Join(err, again); err != nil {
				t.Fatal(err)
			}
			_ = p.failed(t.Context(), rejected, gitrepo.ErrRefused)
			died := kv.process.killAt(moment, n)
			_, _ = p.pushing(t.Context(), 3, last)
			<-died
			next := newPushes(t, kv, nonePending)
			noted := next.doubts[len(next.doubts)-1]
			want := map[byte]map[types.UID]int{2: {"before": 1500, "refused": 10}, 3: {"before": 1500, "last": 20_000}}[noted.Tip[0]]
			got := map[types.UID]int{}
			for _, comparison := range slices.Concat(noted.Compares, noted.Compared) {
				got[comparison.UID] = len(comparison.listed)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s %d: the note of push %d has %v, want %v", moment, n, noted.Tip[0], got, want)
			}
			next.compare(noted.Compared)
			next.passed(t.Context(), noted)
			if _, err := next.pushing(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
			if rows, err := next.log.table.Count(t.Context(), ""); rows != 1+2 || err != nil { // The notes, and the comparison before.
				t.Errorf("%s %d: %d rows remain (%v), want 3", moment, n, rows, err)
			}
		}
	}
}

// TestComparisonsAreWrittenOnce checks that pushes do not write again what an earlier one has compared, however long it is needed.
func TestComparisonsAreWrittenOnce(t *testing.T) {
	kv := newStoreKV(t, &process{})
	p := newPushes(t, kv, func(types.UID) time.Time { return time.Now().Add(-time.Hour) })
	accepted, err := p.pushing(t.Context(), 0, comparisonOf("suspended", 9000))
	if err != nil {
		t.Fatal(err)
	}
	p.passed(t.Context(), accepted)
	p.compare(accepted.Compares)
	for i := range byte(20) { // All of them are in doubt.
		if _, err := p.pushing(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	value, _, err := p.log.table.Get(t.Context(), p.log.key(p.key))
	if err != nil || len(value) > 4<<10 {
		t.Errorf("the notes have %d bytes (%v)", len(value), err)
	}
	next := newPushes(t, kv, nonePending)
	if n := len(next.doubts); n != keptDoubts {
		t.Fatalf("%d notes, want %d", n, keptDoubts)
	}
	if n := len(next.doubts[keptDoubts-1].Compared[0].listed); n != 9000 {
		t.Errorf("the next process finds %d scopes, want 9000", n)
	}
}

// TestLargestNotes checks that the notes of a branch fit into a row if each has as many destinations and comparisons as possible.
func TestLargestNotes(t *testing.T) {
	const destinations = 1000 // the most that --git-batch-max-files permits
	p := newPushes(t, newStoreKV(t, &process{}), nonePending)
	for range keptComparisons + 1 {
		p.compare([]*notedComparison{{ID: string(uuid.NewUUID()), UID: uuid.NewUUID(), Time: time.Now()}})
	}
	for i := range byte(keptDoubts + 1) {
		note := &pushNote{Tip: gitrepo.Hash{i}, Through: map[types.UID]uint64{}}
		for range destinations {
			note.Through[uuid.NewUUID()] = 1e12
		}
		if err := p.prepare(t.Context(), gitrepo.Hash{}, note, nil); err != nil {
			t.Fatal(err)
		}
		if n := len(note.Compared); n != keptComparisons {
			t.Errorf("%d comparisons are noted, want %d", n, keptComparisons)
		}
	}
}

// TestRefusedPushesAreNotInDoubt checks which pushes the remote may still accept after an error.
func TestRefusedPushesAreNotInDoubt(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"refused":   {fmt.Errorf("push: %w", gitrepo.ErrRefused), 1},
		"too late":  {fmt.Errorf("push: %w", gitrepo.ErrMoved), 1},
		"no answer": {&gitrepo.Error{Kind: gitrepo.Unreachable}, 2},
		"rejected":  {&gitrepo.Error{Kind: gitrepo.Rejected}, 2},
	} {
		p := newPushes(t, newStoreKV(t, &process{}), nonePending)
		_, err := p.pushing(t.Context(), 1)
		note, again := p.pushing(t.Context(), 2)
		if err := errors.Join(err, again); err != nil {
			t.Fatal(err)
		}
		if err := p.failed(t.Context(), note, tt.err); !errors.Is(err, tt.err) {
			t.Errorf("%s: error = %v", name, err)
		}
		if n := len(p.doubts); n != tt.want {
			t.Errorf("%s: %d pushes are in doubt, want %d", name, n, tt.want)
		}
	}
}

// TestNotesOfAnEarlierVersion checks that notes with the scopes in them, as an earlier version has written them, are read without these.
func TestNotesOfAnEarlierVersion(t *testing.T) {
	const scopes = `[{"uid": "a", "watch": {"Resource": {"Group": "", "Version": "v1", "Resource": "configmaps"}, "Namespace": "shop"},
		"resourceVersion": "100", "time": "2026-01-02T03:04:05Z"}]`
	kv := newStoreKV(t, &process{})
	p := newPushes(t, kv, nonePending)
	tip, err := json.Marshal(gitrepo.Hash{2})
	if err != nil {
		t.Fatal(err)
	}
	note := fmt.Sprintf(`[{"base": %s, "tip": %[1]s, "through": {"a": 7}, "compares": %s, "compared": %[2]s}]`, tip, scopes)
	if err := p.log.table.Put(t.Context(), storetable.Row{Key: p.log.key(p.key), Value: []byte(note)}); err != nil {
		t.Fatal(err)
	}
	next := newPushes(t, kv, nonePending)
	if n := len(next.doubts); n != 1 {
		t.Fatalf("%d notes, want 1", n)
	}
	if got := next.doubts[0]; got.Tip != (gitrepo.Hash{2}) || got.Through["a"] != 7 || len(got.Compares)+len(got.Compared) != 0 {
		t.Errorf("note = %+v", got)
	}
}
