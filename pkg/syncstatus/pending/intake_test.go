// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/attribution"
	syncstatuspending "github.com/configbutler/slipstream/pkg/syncstatus/pending"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestWindow(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	due := func(length time.Duration, want time.Duration, some bool) {
		t.Helper()
		if got, ok := i.Due("shop", length); got != want || ok != some {
			t.Errorf("due in %s, %v; want %s, %v", got, ok, want, some)
		}
	}
	due(window, 0, false)
	i.Add(changed("shop", "web", 1))
	due(window, window, true)
	s.clock.Step(10 * time.Second)
	i.Add(changed("shop", "web", 2), changed("shop", "api", 3))
	due(window, 20*time.Second, true)
	due(time.Minute, 50*time.Second, true)
	due(5*time.Second, 0, true)
	s.clock.Step(time.Hour)
	due(window, 0, true)
	if wait, some := i.Due("other", window); wait != 0 || some {
		t.Errorf("a namespace without changes is due in %s: %v", wait, some)
	}
	batch := s.closed(i, "shop")
	if !batch.FirstSeen.Equal(testkit.Noon) || batch.Resync {
		t.Errorf("first seen at %s, resync: %v", batch.FirstSeen, batch.Resync)
	}
	expect(t, "the batch", names(batch.Changes), []string{"api 3 x1", "web 2 x2"})
	due(window, 0, true)
	s.done(i, batch)
	due(window, 0, false)
	if batch, some, err := i.Close(t.Context(), "shop"); some || err != nil {
		t.Errorf("another batch exists: %v, %v", batch, err)
	}
	expect(t, "rows", s.rows(), nil)
}

// TestClockSetBack has a clock that was an hour ahead.
func TestClockSetBack(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	i.Add(changed("shop", "web", 1))
	s.process.Start(0, nil)
	s.run(i, noNotices())
	s.eventually("the change is written", func() bool { return len(s.rows()) == 1 })
	for name, at := range map[string]*syncstatuspending.Intake{"running": i, "started again": s.open()} {
		s.clock.SetTime(testkit.Noon.Add(-time.Hour))
		if wait, some := at.Due("shop", window); wait != window || !some {
			t.Errorf("%s: due in %s, %v", name, wait, some)
		}
		s.clock.SetTime(testkit.Noon.Add(-time.Hour + window))
		if wait, some := at.Due("shop", window); wait != 0 || !some {
			t.Errorf("%s: due in %s, %v after the window", name, wait, some)
		}
	}
}

func TestNewestWins(t *testing.T) {
	reborn := func(version int) syncstatuspending.Event {
		event := changed("shop", "web", version)
		event.UID = "another"
		return event
	}
	without := func(event syncstatuspending.Event) syncstatuspending.Event {
		event.ResourceVersion = ""
		return event
	}
	recorded := func(event syncstatuspending.Event) syncstatuspending.Event {
		event.Recorded = true
		return event
	}
	for name, test := range map[string]struct {
		events []syncstatuspending.Event
		want   string
	}{
		"in order": {[]syncstatuspending.Event{changed("shop", "web", 9), changed("shop", "web", 10)}, "web 10 x2"},
		"repeated": {[]syncstatuspending.Event{changed("shop", "web", 9), changed("shop", "web", 9)}, "web 9 x1"},
		"late":     {[]syncstatuspending.Event{changed("shop", "web", 10), changed("shop", "web", 9)}, "web 10 x2"},
		"removed":  {[]syncstatuspending.Event{changed("shop", "web", 9), removed("shop", "web", 10)}, "web 10 removed x2"},
		"removed, repeated": {
			[]syncstatuspending.Event{removed("shop", "web", 10), removed("shop", "web", 10)}, "web 10 removed x1",
		},
		"found to be removed": {
			[]syncstatuspending.Event{changed("shop", "web", 10), without(removed("shop", "web", 0))}, "web  removed x2",
		},
		"removed, by the version before": {
			[]syncstatuspending.Event{changed("shop", "web", 10), removed("shop", "web", 10)}, "web 10 removed x2",
		},
		"of what is recorded": {[]syncstatuspending.Event{recorded(changed("shop", "web", 9))}, "web 9 x0"},
		"of what is recorded, then changed": {
			[]syncstatuspending.Event{recorded(changed("shop", "web", 9)), changed("shop", "web", 10)}, "web 10 x1",
		},
		"recreated":                    {[]syncstatuspending.Event{removed("shop", "web", 10), reborn(11)}, "web 11 x2"},
		"recreated in another cluster": {[]syncstatuspending.Event{changed("shop", "web", 10), reborn(2)}, "web 2 x2"},
	} {
		s := newFixture(t)
		i := s.open()
		i.Add(test.events...)
		expect(t, name, names(s.closed(i, "shop").Changes), []string{test.want})
		expect(t, name+", after a restart", names(s.closed(s.open(), "shop").Changes), []string{test.want})
	}
}

// TestInclude adds objects without events, before and after events of them.
func TestInclude(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	object := func(name string) syncstatuspending.Object { return changed("shop", name, 0).Object }
	i.Add(by("eve", changed("shop", "web", 1)))
	i.Include(object("web"), object("api"), object("db"))
	i.Include(object("db"))
	i.Add(by("adam", changed("shop", "api", 2)))
	for _, name := range []string{"running", "started again"} {
		batch := s.closed(i, "shop")
		i = s.open()
		expect(t, name, names(batch.Changes), []string{"api 2 x1", "db  x0", "web 1 x1"})
		for number, authors := range []int{1, 0, 1} {
			if change := batch.Changes[number]; len(change.Authors) != authors || !change.First.Equal(testkit.Noon) {
				t.Errorf("%s: %s: %+v since %s", name, change.Name, change.Authors, change.First)
			}
		}
	}
	full := newFixture(t)
	full.capacity = 1
	i = full.open()
	i.Add(changed("shop", "web", 1))
	i.Include(object("api"))
	if batch := full.closed(i, "shop"); !batch.Resync || len(batch.Changes) > 0 {
		t.Errorf("more changes than the capacity: %+v", batch)
	}
}

func TestObjectsAreDistinct(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	config := changed("shop", "web", 1)
	config.Group, config.Kind = "", "ConfigMap"
	other := changed("shop", "web", 1)
	other.Group = "example.com"
	i.Add(changed("shop", "web", 1), config, other, changed("shop-2", "web", 1), changed("shop", "web.2", 1))
	expect(t, "shop", names(s.closed(i, "shop").Changes), []string{"web 1 x1", "web 1 x1", "web 1 x1", "web.2 1 x1"})
	expect(t, "shop-2", names(s.closed(i, "shop-2").Changes), []string{"web 1 x1"})
	expect(t, "rows", s.rows(), []string{
		"shop-2/#", "shop-2/#/apps/Deployment/web", "shop/#", "shop/#//ConfigMap/web",
		"shop/#/apps/Deployment/web", "shop/#/apps/Deployment/web.2", "shop/#/example.com/Deployment/web",
	})
	again := s.open()
	if diff := cmp.Diff(s.closed(i, "shop"), s.closed(again, "shop")); diff != "" {
		t.Errorf("a different batch after a restart:\n%s", diff)
	}
	s.done(again, s.closed(again, "shop"))
	expect(t, "rows that are left", s.rows(), []string{"shop-2/#", "shop-2/#/apps/Deployment/web"})
}

func TestAuthors(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	version := 0
	add := func(author attribution.Author) {
		version++
		event := changed("shop", "web", version)
		event.Author = author
		i.Add(event)
	}
	jane := attribution.Author{Actor: attribution.Actor{Username: "jane", Groups: []string{"dev"}}, Signal: attribution.Audit}
	add(jane)
	add(attribution.Author{})
	jane.Email = "jane@example.com"
	add(jane)
	add(attribution.Author{Signal: attribution.ManagedFields, Manager: "helm"})
	add(attribution.Author{Actor: attribution.Actor{Username: strings.Repeat("x", 2000)}, Signal: attribution.Audit})
	batch := s.closed(i, "shop")
	jane.Groups = nil
	want := []syncstatuspending.Contribution{
		{Author: jane, Events: 2},
		{Author: attribution.Author{Signal: attribution.ManagedFields, Manager: "helm"}, Events: 1},
		{Author: attribution.Author{Signal: attribution.Unknown}, Events: 2},
	}
	if diff := cmp.Diff(want, batch.Changes[0].Authors); diff != "" {
		t.Errorf("authors:\n%s", diff)
	}
	if diff := cmp.Diff(batch, s.closed(s.open(), "shop")); diff != "" {
		t.Errorf("a different batch after a restart:\n%s", diff)
	}
}

func TestAuthorsAreLimited(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	const users = 1000
	for n := range users {
		i.Add(by(fmt.Sprintf("user-%d", n), changed("shop", "web", n+1)))
	}
	change := s.closed(i, "shop").Changes[0]
	if change.Events != users || len(change.Authors) != 10 || change.Authors[9].Author.Username != "user-999" {
		t.Errorf("%d events of %+v", change.Events, change.Authors)
	}
}

func TestEventOf(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apps/v1")
	object.SetKind("Deployment")
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetUID("uid of web")
	object.SetResourceVersion("7")
	jane := by("jane", changed("shop", "web", 7))
	if diff := cmp.Diff(jane, syncstatuspending.EventOf(object, false, jane.Author)); diff != "" {
		t.Errorf("event:\n%s", diff)
	}
	if event := syncstatuspending.EventOf(object, true, jane.Author); !event.Removed {
		t.Errorf("event: %+v", event)
	}
}

// TestEventsWhileABatchIsRecorded checks that they are added to the next batch.
func TestEventsWhileABatchIsRecorded(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	i.Add(changed("shop", "web", 1), changed("shop", "api", 2))
	first := s.closed(i, "shop")
	s.clock.Step(10 * time.Second)
	i.Add(changed("shop", "web", 3), changed("other", "web", 4))
	if diff := cmp.Diff(first, s.closed(i, "shop")); diff != "" {
		t.Errorf("a closed batch has changed:\n%s", diff)
	}
	s.clock.Step(time.Second)
	s.done(i, first)
	s.done(i, first)
	if wait, some := i.Due("shop", window); wait != 29*time.Second || !some {
		t.Errorf("the next batch is due in %s, %v", wait, some)
	}
	second := s.closed(i, "shop")
	expect(t, "the next batch", names(second.Changes), []string{"web 3 x1"})
	if second.ID == first.ID || !second.FirstSeen.Equal(testkit.Noon.Add(10*time.Second)) {
		t.Errorf("the next batch is %s, first seen at %s", second.ID, second.FirstSeen)
	}
	s.done(i, first)
	if diff := cmp.Diff(second, s.closed(i, "shop")); diff != "" {
		t.Errorf("Done of one batch has changed another:\n%s", diff)
	}
	expect(t, "another namespace", names(s.closed(i, "other").Changes), []string{"web 4 x1"})
}

func TestResyncKeepsChanges(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	before := metric(t, "resyncs_total", string(syncstatuspending.Relisted))
	i.Add(by("jane", changed("shop", "web", 1)))
	i.Resync("shop", syncstatuspending.Relisted)
	i.Resync("shop", syncstatuspending.Relisted)
	i.Add(changed("shop", "api", 2))
	i.Resync("empty", syncstatuspending.Requested)
	if wait, some := i.Due("empty", window); wait != window || !some {
		t.Errorf("a resync alone is due in %s, %v", wait, some)
	}
	for range 3 {
		shop, empty := s.closed(i, "shop"), s.closed(i, "empty")
		expect(t, "changes", names(shop.Changes), []string{"api 2 x1", "web 1 x1"})
		if !shop.Resync || !empty.Resync || len(empty.Changes) > 0 {
			t.Errorf("batches: %+v, %+v", shop, empty)
		}
		i = s.open()
	}
	if got := metric(t, "resyncs_total", string(syncstatuspending.Relisted)) - before; got != 1 {
		t.Errorf("%v resyncs were counted", got)
	}
	s.done(i, s.closed(i, "shop"))
	i.Add(changed("shop", "web", 3))
	if batch := s.closed(i, "shop"); batch.Resync {
		t.Error("a resync is not done after Done")
	}
}

func TestIDsAreUnique(t *testing.T) {
	s := newFixture(t)
	seen := map[string]bool{}
	i := s.open()
	for n := range 100 {
		// The clock stops, and is set back.
		if n == 50 {
			s.clock.SetTime(testkit.Noon.Add(-time.Minute))
		}
		i.Add(changed("shop", "web", n+1))
		batch := s.closed(i, "shop")
		seen[batch.ID] = true
		s.done(i, batch)
		if n%10 == 0 {
			i = s.open()
		}
	}
	if len(seen) != 100 {
		t.Errorf("100 batches have %d IDs", len(seen))
	}
}

func TestUnreadableRows(t *testing.T) {
	s := newFixture(t)
	i := s.open()
	i.Add(changed("shop", "web", 1), changed("shop", "api", 2), changed("other", "web", 3))
	recorded := s.closed(i, "shop")
	s.closed(i, "other")
	table := s.table()
	var broken []string
	for row, err := range table.Scan(t.Context(), "shop/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(row.Key, "/web") {
			row.Value = []byte("{")
			broken = append(broken, row.Key)
			if err := table.Put(t.Context(), row); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, key := range []string{"shop/x/y", "third/number", "fourth"} {
		if err := table.Put(t.Context(), tableRow(key, "{}")); err != nil {
			t.Fatal(err)
		}
	}
	i = s.open()
	first := s.closed(i, "shop")
	expect(t, "what can be read", names(first.Changes), []string{"api 2 x1"})
	if first.ID != recorded.ID || first.Resync {
		t.Errorf("the batch that may have been recorded has changed: %+v", first)
	}
	s.done(i, first)
	for _, namespace := range []string{"shop", "third", "fourth"} {
		if batch := s.closed(i, namespace); !batch.Resync {
			t.Errorf("%s is not compared: %+v", namespace, batch)
		}
	}
	if batch := s.closed(i, "other"); batch.Resync {
		t.Errorf("other is compared: %+v", batch)
	}
	for row, err := range table.Scan(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(broken, row.Key) || row.Key == "fourth" || row.Key == "third/number" {
			t.Errorf("%s was not deleted", row.Key)
		}
	}
}
