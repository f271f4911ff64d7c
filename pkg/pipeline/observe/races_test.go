// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestChangesWaitWhileTheirTypeIsListed(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "gone", "1"))
	s.server.put(configMaps, object("shop", "kept", "2"))
	s.run()
	to, other := newTarget(), newTarget()
	s.set("other", instances("configmaps"), other)
	s.listed("other")
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)

	// The change arrives after the response to the list.
	var once sync.Once
	to.upserting = func() {
		once.Do(func() {
			before := other.callCount()
			s.server.remove(configMaps, object("shop", "kept", "2"))
			// Waiting longer would detect more, but the absence of a report cannot be awaited.
			_ = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 200*time.Millisecond, true, func(context.Context) (bool, error) {
				return other.callCount() != before, nil
			})
			if other.callCount() != before {
				t.Error("change was reported while the type was listed")
			}
		})
	}
	if err := s.observer.List(t.Context(), shop, ledger.Immediate); err != nil {
		t.Fatal(err)
	}
	to.expect(t, configMap("gone"))
	other.expect(t, configMap("gone"))
}

func TestChangesUpToAListAreNotReportedAfterIt(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "kept", "1"))
	s.server.put(configMaps, object("shop", "gone", "2"))
	s.run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)

	s.server.onList(func(string) {
		s.server.onList(nil)
		s.server.remove(configMaps, object("shop", "gone", "2"))
		s.server.put(configMaps, object("shop", "new", "3"))
	})
	before := to.callCount()
	if err := s.observer.List(t.Context(), shop, ledger.Immediate); err != nil {
		t.Fatal(err)
	}
	to.expect(t, configMap("kept"), configMap("new"))
	s.server.put(configMaps, object("shop", "last", "4"))
	to.expect(t, configMap("kept"), configMap("new"), configMap("last"))
	if got := to.urgency(ledger.Immediate); got != 2 {
		t.Errorf("the list reported %d objects, want 2", got)
	}
	if got := s.observer.State(shop).Objects; got != 3 {
		t.Errorf("%d objects, want 3", got)
	}
	if got := to.callCount() - before; got != 2+1+1 {
		t.Errorf("%d calls, want two objects, the end of the list and the change after it", got)
	}
}

// TestWatchThatStartsAgainDuringAList checks that the list which follows the start of a watch does not repeat the urgency of the list before.
func TestWatchThatStartsAgainDuringAList(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	s.server.onList(func(string) {
		s.server.onList(nil)
		s.server.forget()
		testkit.Eventually(t, "the watch has started again", func() error {
			if s.observer.State(shop).Listed {
				return errors.New("no other list is needed")
			}
			return nil
		})
	})
	if err := s.observer.List(t.Context(), shop, ledger.Resend); err != nil {
		t.Fatal(err)
	}
	s.listed(shop)
	if got := to.urgency(ledger.Resend); got != 1 {
		t.Errorf("the object was reported %d times to be sent again, want once", got)
	}
}

func TestUnsetEndsARunningList(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s.server.onList(func(string) {
		close(begun)
		<-goOn
	})
	go func() { done <- s.observer.List(context.WithoutCancel(t.Context()), shop, ledger.Resend) }()
	<-begun
	err := s.observer.Unset(t.Context(), shop)
	before := to.callCount()
	close(goOn)
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
	if to.callCount() != before {
		t.Error("target was called after Unset")
	}
}

// TestAChangeThatIsNewerThanTheListIsReported checks that a change that is newer than a running list is reported after it.
func TestAChangeThatIsNewerThanTheListIsReported(t *testing.T) {
	s := newFixture(t, configMapType).run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	var stop atomic.Bool
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; !stop.Load(); i++ {
			s.server.put(configMaps, labelled(object("shop", fmt.Sprint("a", i%5), "1"), fmt.Sprint(i)))
			if i%3 == 0 {
				s.server.remove(configMaps, object("shop", fmt.Sprint("a", (i+2)%5), "1"))
			}
		}
	})
	for i := range 30 {
		if err := s.observer.List(t.Context(), shop, ledger.Immediate); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			s.server.forget()
		}
	}
	stop.Store(true)
	writers.Wait()
	s.server.put(configMaps, object("shop", "last", "1"))
	testkit.Eventually(t, "agreement with the server", func() error { return s.agrees(to) })
	s.listed(shop)
	if got, want := s.observer.State(shop).Objects, len(to.keys()); got != int64(want) {
		t.Errorf("state has %d objects, want %d", got, want)
	}
}

// agrees compares the ConfigMaps of a target with those of the API server.
func (s *fixture) agrees(to *target) error {
	want := map[string]string{}
	s.server.with(configMaps, func(c *collection) {
		for _, o := range c.objects {
			want[configMap(o.GetName())] = o.GetLabels()["app"]
		}
	})
	keys := to.keys()
	if len(keys) != len(want) {
		return fmt.Errorf("%d stored objects of %d", len(keys), len(want))
	}
	for _, key := range keys {
		it, _ := to.get(key)
		if label, ok := want[key]; !ok || label != it.Labels["app"] {
			return fmt.Errorf("%s: stored label = %q, label = %q (%t)", key, it.Labels["app"], label, ok)
		}
	}
	return nil
}

func TestChangesDuringCompactionAreFound(t *testing.T) {
	s := newFixture(t, configMapType).run()
	s.server.put(configMaps, object("shop", "a", "1"))
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	to.expect(t, configMap("a"))
	s.listed(shop)
	s.server.mutex.Lock()
	s.server.served[pathOf(configMaps)].objects = nil // No watch reports this.
	s.server.mutex.Unlock()
	s.server.forget()
	to.expect(t)
	s.listed(shop)
}

func TestALaterPipelineReceivesEverythingAndTheOthersNothing(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.run()
	first, second := newTarget(), newTarget()
	s.set(shop, instances("configmaps"), first)
	first.expect(t, configMap("a"))
	s.listed(shop)
	first.takeChanges()
	upserts := first.urgency(ledger.Debounced)

	s.set("later", instances("configmaps"), second)
	second.expect(t, configMap("a"))
	s.listed("later")
	if first.urgency(ledger.Debounced) != upserts {
		t.Error("first pipeline was called again")
	}
	s.server.put(configMaps, object("shop", "b", "2"))
	first.expect(t, configMap("a"), configMap("b"))
	second.expect(t, configMap("a"), configMap("b"))
	if _, watches := s.server.counts(configMaps); watches != 1 {
		t.Errorf("%d watches, want one for both", watches)
	}
	// Another target of the same pipeline receives everything, and the first nothing more.
	third := newTarget()
	s.set(shop, instances("configmaps"), third)
	third.expect(t, configMap("a"), configMap("b"))
	before := first.callCount()
	s.server.put(configMaps, object("shop", "c", "3"))
	third.expect(t, configMap("a"), configMap("b"), configMap("c"))
	if first.callCount() != before {
		t.Error("former target was called after another one replaced it")
	}
}

func TestSettingTheSameAgainDoesNotList(t *testing.T) {
	s := newFixture(t, configMapType, widgetType).run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	lists, _ := s.server.counts(configMaps)
	s.set(shop, instances("configmaps", "widgets"), to)
	s.listed(shop)
	if again, _ := s.server.counts(configMaps); again != lists {
		t.Errorf("%d lists, want %d as before", again, lists)
	}
	s.server.put(widgets, object("shop", "w", "1"))
	to.expect(t, widget("w"))
	s.set(shop, instances("configmaps"), to)
	to.expect(t)
}

func TestUnsetEndsCalls(t *testing.T) {
	s := newFixture(t, configMapType).run()
	to, other := newTarget(), newTarget()
	s.set(shop, instances("configmaps"), to)
	s.set("other", instances("configmaps"), other)
	s.listed(shop)
	s.unset(shop)
	before := to.callCount()
	s.server.put(configMaps, object("shop", "a", "1"))
	s.discovered(configMapType, widgetType)
	other.expect(t, configMap("a"))
	if to.callCount() != before {
		t.Error("target was called after Unset")
	}
	if err := s.observer.List(t.Context(), shop, ledger.Immediate); err == nil {
		t.Error("unobserved type was listed")
	}
	if state := s.observer.State(shop); state.Listed || state.WatchedTypes != 0 {
		t.Errorf("state = %+v", state)
	}
	s.unset("other")
	testkit.Eventually(t, "the end of the watch", func() error {
		if _, watches := s.server.counts(configMaps); watches > 0 {
			return errors.New("unobserved type is still watched")
		}
		return nil
	})
}

func TestListReportsTheRequestedKindsWithTheirUrgency(t *testing.T) {
	s := newFixture(t, configMapType, definitionType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.server.put(definitions, definition("widgets", "Widget", true))
	s.run()
	to := newTarget()
	s.set(shop, everything, to)
	s.listed(shop)
	for _, test := range []struct {
		how   ledger.Urgency
		kinds []item.Kind
		want  int
	}{
		{ledger.Immediate, []item.Kind{item.Instance}, 1},
		{ledger.Immediate, []item.Kind{item.CustomResourceDefinition}, 2},
		{ledger.Resend, nil, 2},
	} {
		if err := s.observer.List(t.Context(), shop, test.how, test.kinds...); err != nil {
			t.Fatal(err)
		}
		if got := to.urgency(test.how); got != test.want {
			t.Errorf("%v %v: %d objects, want %d", test.how, test.kinds, got, test.want)
		}
	}
	// A restart of the watches must not send anything again.
	debounced := to.urgency(ledger.Debounced)
	s.server.forget()
	testkit.Eventually(t, "the objects of the new watch", func() error {
		if got := to.urgency(ledger.Debounced) - debounced; got < 2 {
			return fmt.Errorf("%d objects, want 2 without urgency", got)
		}
		return nil
	})
	if got := to.urgency(ledger.Resend); got != 2 {
		t.Errorf("%d objects were reported again, want the 2 from before", got)
	}
}

func TestPollsWatchNothing(t *testing.T) {
	s := newFixture(t, configMapType, definitionType)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.run()
	selection := everything
	selection.Poll = true
	to := newTarget()
	s.set(shop, selection, to)
	to.expect(t, configMap("a"))
	s.listed(shop)
	if got := to.urgency(ledger.Immediate); got != 1 {
		t.Errorf("%d urgent objects, want one", got)
	}
	s.server.remove(configMaps, object("shop", "a", "1"))
	s.server.put(configMaps, object("shop", "b", "2"))
	if _, watches := s.server.counts(configMaps); watches != 0 {
		t.Error("poll opened a watch")
	}
	if !slices.Equal(to.keys(), []string{configMap("a")}) {
		t.Errorf("stored objects without a poll = %v", to.keys())
	}
	if err := s.observer.List(t.Context(), shop, ledger.Immediate); err != nil {
		t.Fatal(err)
	}
	to.expect(t, configMap("b"))
	// Another pipeline watches: this one still receives changes by polls only.
	watching := newTarget()
	s.set("watching", instances("configmaps"), watching)
	s.listed("watching")
	s.server.put(configMaps, object("shop", "c", "3"))
	watching.expect(t, configMap("b"), configMap("c"))
	to.expect(t, configMap("b"))
	selection.Poll = false
	s.set(shop, selection, to)
	to.expect(t, configMap("b"), configMap("c"))
}

func TestNothingIsReportedBeforeDiscovery(t *testing.T) {
	s := newFixture(t)
	s.serve(nil)
	s.server.serve(configMaps)
	s.server.put(configMaps, object("shop", "a", "1"))
	s.run()
	old := item.Item{Key: item.Key{Kind: item.Instance, APIVersion: "v1", ObjectKind: "ConfigMap", Namespace: "shop", Name: "old"}}
	to := newTarget(old)
	s.set(shop, everything, to)
	if to.callCount() != 0 || s.observer.State(shop).Listed {
		t.Errorf("reported changes = %v", to.takeChanges())
	}
	if err := s.observer.List(t.Context(), shop, ledger.Immediate); err == nil {
		t.Error("state is listed before discovery")
	}
	s.discovered(configMapType)
	to.expect(t, configMap("a"))
}

func TestSetWaitsForRunUntilItsContextEnds(t *testing.T) {
	s := newFixture(t, configMapType)
	s.server.put(configMaps, object("shop", "a", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := newTarget()
	if err := s.observer.Set(ctx, shop, s.types, instances("configmaps"), to); !errors.Is(err, context.Canceled) {
		t.Fatalf("Set returned %v", err)
	}
	s.run()
	s.set(shop, instances("configmaps"), to)
	to.expect(t, configMap("a"))
}

// Most updates in a cluster do not change an item.
func BenchmarkAnEventThatChangesNothing(b *testing.B) {
	s := newFixture(b, configMapType)
	for i := range 10_000 {
		s.server.put(configMaps, object("shop", fmt.Sprintf("c%05d", i), fmt.Sprint(i)))
	}
	s.run()
	to := newTarget()
	s.set(shop, instances("configmaps"), to)
	s.listed(shop)
	to.takeChanges()
	before := to.callCount()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.server.put(configMaps, object("shop", fmt.Sprintf("c%05d", i%10_000), fmt.Sprint(i%10_000)))
	}
	testkit.Eventually(b, "all events", func() error {
		if got := to.callCount() - before; got < b.N {
			return fmt.Errorf("%d of %d calls", got, b.N)
		}
		return nil
	})
	b.StopTimer()
	if news := to.takeChanges(); len(news) > 0 {
		b.Errorf("%d changes were reported", len(news))
	}
}
