// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// limited lets 20 changes of a destination wait.
func limited(s *fixture) { s.backlog.rows = 20 }

// fillBacklog makes 55 changes, of which 20 may wait in main. It returns the contents of a. The folders of other destinations are written
// meanwhile, so that their backlogs stay below the limit.
func (s *fixture) fillBacklog(folders ...string) (values []string) {
	s.t.Helper()
	for i := range 55 {
		values = append(values, fmt.Sprintf("value-%d.", i))
		s.cluster.put(configMap("a"), values[i])
		if i%10 != 9 {
			continue
		}
		for _, folder := range folders {
			s.holds("main", folder, inShop)
		}
		s.waitPending("main", int64(min(i+1, 20)))
	}
	s.waitOverflow()
	return values
}

// waitOverflow waits for the Event of the overflow of main.
func (s *fixture) waitOverflow() {
	s.t.Helper()
	testkit.EventuallyTrue(s.t, "the Event of the overflow", func() bool {
		select {
		case text := <-s.warned:
			return strings.HasPrefix(text, "main: "+reasonBacklogLimitReached+": 20 changes or 64 MiB wait for branch main")
		default:
			return false
		}
	})
}

// rowsOf returns the number of stored rows of a destination in namespace shop.
func (s *fixture) rowsOf(name string) (rows int) {
	s.t.Helper()
	for _, err := range s.shared.Store.Table("outbox").Scan(s.t.Context(), "shop-"+name+"/") {
		if err != nil {
			s.t.Fatal(err)
		}
		rows++
	}
	return rows
}

// TestBacklogThatReachesItsLimit checks that too many waiting changes of a destination are dropped, that the branch equals the cluster once
// it is written again, and that other destinations keep all their changes.
func TestBacklogThatReachesItsLimit(t *testing.T) {
	suspend := func(yes bool) func(*fixture) {
		return func(s *fixture) { s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = yes }) }
	}
	for name, cause := range map[string]struct{ begin, between, end func(*fixture) }{
		"suspended":                 {begin: suspend(true), between: func(*fixture) {}, end: suspend(false)},
		"suspended, with a restart": {begin: suspend(true), between: func(s *fixture) { s.stop(); s.start() }, end: suspend(false)},
		"refused by the remote": {
			begin:   func(s *fixture) { s.refuseFolder("clusters/a") },
			between: func(*fixture) {},
			end:     func(s *fixture) { s.git.hook(s.t, "shop.git", "pre-receive", "") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, shared, limited)
			s.cluster.put(configMap("a"), "value-first")
			s.cluster.put(configMap("deleted"), "1")
			s.mirrored()
			s.holds("main", "b", inShop)
			s.idle()
			cause.begin(s)
			values := append([]string{"value-first"}, s.fillBacklog("b", "c")...)
			s.cluster.remove(configMap("deleted"))
			s.holds("main", "b", inShop)
			if rows := s.rowsOf("main"); rows != 20 {
				t.Errorf("%d rows are stored, want the 20 from before the limit was reached", rows)
			}
			s.plan() // removes the rows
			if rows, r := s.rowsOf("main"), s.record("main"); rows != 0 || r.PendingChanges != 0 || r.OldestPendingTime == nil {
				t.Errorf("%d rows are stored, %d changes wait since %v", rows, r.PendingChanges, r.OldestPendingTime)
			}
			for _, text := range []string{s.record("main").State, s.ready("main").Message} {
				if !strings.Contains(text, changesDropped) {
					t.Errorf("message = %q", text)
				}
			}
			cause.between(s)
			cause.end(s)
			s.mirrored()
			s.idle()
			s.upToDate("main")
			s.eachInOrder("b", "a", values)
			s.eachInOrder("c", "a", values)
			s.cluster.put(configMap("a"), "value-after")
			s.mirrored()
			s.holds("main", "b", inShop)
			s.holds("main", "c", inShop)
			commits := s.commits("main")
			for _, subject := range commits[len(commits)-3:] {
				if subject != "[UPDATE] v1/configmaps shop/a" {
					t.Errorf("commit = %q after the branch was compared", subject)
				}
			}
		})
	}
}

// upToDate waits until the state of a destination says that nothing waits.
func (s *fixture) upToDate(name string) {
	s.t.Helper()
	testkit.Eventually(s.t, "the state", func() error {
		if r := s.record(name); r.State != "Up to date" || r.OldestPendingTime != nil {
			return fmt.Errorf("state = %q, oldest change at %v", r.State, r.OldestPendingTime)
		}
		return nil
	})
}

// fullBacklog returns a fixture whose remote is down, with more changes than may wait.
func fullBacklog(t *testing.T) *fixture {
	t.Helper()
	s := newFixture(t, perChange, limited)
	s.cluster.put(configMap("a"), "value-first")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.fillBacklog()
	return s
}

// TestDeathWhileRowsAreDropped kills the process while it removes the rows of a backlog that has reached its limit.
func TestDeathWhileRowsAreDropped(t *testing.T) {
	for _, moment := range []string{"before delete outbox", "after delete outbox"} {
		t.Run(moment, func(t *testing.T) {
			s := fullBacklog(t)
			died := s.process.killAt(moment, 1)
			s.plan()
			<-died
			s.stop()
			s.start()
			s.git.guard(nil)
			s.mirrored()
			s.idle()
			s.upToDate("main")
			s.eachChangeOnce(configMap("a"))
		})
	}
}

// TestRowsThatCannotBeDropped checks that no change is accepted until the rows have been removed.
func TestRowsThatCannotBeDropped(t *testing.T) {
	s := fullBacklog(t)
	s.kv.failAt("delete outbox", errors.New("no"))
	s.plan()
	d := s.destination("main")
	d.acceptChanges()
	if refused, begins := d.refuse(outbox.Change{}, s.backlog); !refused || begins {
		t.Errorf("change refused: %v, overflow begins again: %v", refused, begins)
	}
	s.kv.fail(nil)
	s.plan()
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	s.upToDate("main")
}

// TestRefusedChanges checks that each refused change requests a comparison, also while one is running, and when changes are accepted again.
func TestRefusedChanges(t *testing.T) {
	limit := backlogLimit{rows: 10, bytes: 100}
	d := newDestination(newTestDestination("shop", "main", "clusters/a"))
	d.seeds.selectTypes(map[schema.GroupVersionResource]string{configMaps: "all"})
	always := func(schema.GroupVersionResource) bool { return true }
	compare := func() (needed bool) {
		next, needed := d.seeds.take(always, always)
		if needed {
			d.seeds.succeeded(next, map[watch.Watch]position{}, found{})
		}
		return needed
	}
	change := outbox.Change{Object: outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "shop", Name: "a"}}
	steps := []struct {
		name                      string
		do                        func()
		refused, begins, compared bool
	}{
		{name: "below the limit", do: func() { compare() }},
		{
			name: "at the limit of bytes", refused: true, begins: true, compared: true,
			do: func() {
				d.queue.Durable(outbox.Row{Sequence: 7, Change: outbox.Change{Content: make([]byte, 100), Seen: testkit.Noon}})
			},
		},
		{name: "while a comparison may be running", do: func() {}, refused: true, compared: true},
		{name: "before the rows are removed", do: d.acceptChanges, refused: true, compared: true},
		{name: "after the rows are removed", do: func() { d.queue.Gone(7); d.overflow.rowsRemoved(7) }, refused: true, compared: true},
		{name: "while the branch is served", do: d.acceptChanges},
	}
	for _, step := range steps {
		step.do()
		refused, begins := d.refuse(change, limit)
		if refused != step.refused || begins != step.begins {
			t.Errorf("%s: refused: %v, overflow begins: %v", step.name, refused, begins)
		}
		if compared := compare(); compared != step.compared {
			t.Errorf("%s: compared: %v", step.name, compared)
		}
	}
	if ended, again := d.endOverflow(), d.endOverflow(); !ended || again || !d.oldestWaiting().IsZero() {
		t.Errorf("overflow ended: %v, and again: %v; oldest change at %v", ended, again, d.oldestWaiting())
	}
}
