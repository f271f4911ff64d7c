// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	create  = v1alpha1.OperationCreate
	update  = v1alpha1.OperationUpdate
	deleted = v1alpha1.OperationDelete
)

// testFact is the fact of one request in a test case.
type testFact struct {
	user      string
	signal    Signal
	operation v1alpha1.Operation
	change    func(*Fact)
}

func audited(user string, change ...func(*Fact)) testFact {
	return requested(user, Audit, update, change)
}
func attempted(user string, change ...func(*Fact)) testFact {
	return requested(user, Admission, update, change)
}

func requested(user string, signal Signal, operation v1alpha1.Operation, changes []func(*Fact)) testFact {
	return testFact{user, signal, operation, func(f *Fact) {
		for _, change := range changes {
			change(f)
		}
	}}
}

func (r testFact) creating() testFact { r.operation = create; return r }
func (r testFact) deleting() testFact { r.operation = deleted; return r }

func from(version, content string) func(*Fact) {
	return func(f *Fact) { f.Before, f.Content = version, content }
}

// begun moves a request in time and sets its duration.
func begun(after, took time.Duration) func(*Fact) {
	return func(f *Fact) {
		f.Begun = f.Begun.Add(after)
		if f.Signal == Audit {
			f.Ended = f.Begun.Add(took)
		}
	}
}

func made(version string) func(*Fact) { return func(f *Fact) { f.After = version } }
func nameOnly(f *Fact)                { f.UID, f.After = "", "" }
func lasting(f *Fact)                 { f.Lasting = true }
func scaled(to int64) func(*Fact)     { return func(f *Fact) { f.Replicas, f.Content = &to, "" } }

func collected(labels, fields string) func(*Fact) {
	return func(f *Fact) {
		f.UID, f.Name, f.Collection = "", "", &Collection{LabelSelector: labels, FieldSelector: fields}
	}
}

// TestWrites tests which author facts name for a change of one object from resourceVersion 5 to 6 with content C.
func TestWrites(t *testing.T) {
	const ms = time.Millisecond
	seen := configMap("web", "u1", "5")
	cases := map[string]struct {
		operation v1alpha1.Operation
		unseen    bool
		object    func(built) built
		facts     []testFact
		want      string
		signal    Signal
	}{
		"nothing":                {signal: ManagedFields},
		"audit":                  {facts: []testFact{audited("ann")}, want: "ann", signal: Audit},
		"audit of another state": {facts: []testFact{audited("ann", made("7"))}, signal: ManagedFields},
		"audit twice":            {facts: []testFact{audited("ann"), audited("ann")}, want: "ann", signal: Audit},
		"creation": {
			operation: create, facts: []testFact{audited("ann").creating(), audited("bob", begun(-1*ms, ms))}, want: "ann", signal: Audit,
		},
		"deletion of what is written": {facts: []testFact{audited("ann", made("6")).deleting()}, signal: ManagedFields},

		"no-op after the change": {
			facts: []testFact{audited("bob", begun(3*ms, 9*ms)), audited("ann", begun(0, 4*ms))}, want: "ann", signal: Audit,
		},
		"concurrent no-op":         {facts: []testFact{audited("bob", begun(-3*ms, 9*ms)), audited("ann", begun(0, 4*ms))}, signal: Unknown},
		"forged for the same time": {facts: []testFact{audited("ann"), audited("eve")}, signal: Unknown},
		"no-op from the start": {
			facts: []testFact{audited("bob", begun(3*ms, 9*ms)), audited("ann", begun(0, 4*ms)), audited("bob", begun(1*ms, 1*ms))}, signal: Unknown,
		},
		"forged before": {facts: []testFact{audited("eve", begun(-5000*ms, ms)), audited("ann")}, signal: Unknown},
		"forged before, admission": {
			facts: []testFact{audited("eve", begun(-50*ms, ms)), audited("ann"), attempted("ann", from("5", "C"))}, signal: Unknown,
		},
		"raced, and admission decides": {
			facts: []testFact{audited("bob", begun(-3*ms, 9*ms)), audited("ann"), attempted("ann", from("5", "C"))}, want: "ann", signal: Audit,
		},

		"audit and admission agree":    {facts: []testFact{audited("ann"), attempted("ann", from("5", "C"))}, want: "ann", signal: Audit},
		"audit and admission disagree": {facts: []testFact{audited("ann"), attempted("bob", from("5", "C"))}, signal: Unknown},
		"audit and a refused attempt": {
			facts: []testFact{audited("ann"), attempted("ann", from("5", "C")), attempted("bob", from("5", "C"))}, want: "ann", signal: Audit,
		},
		"audit and an unrelated attempt": {facts: []testFact{audited("ann"), attempted("bob", from("5", "D"))}, want: "ann", signal: Audit},

		"admission":                     {facts: []testFact{attempted("ann", from("5", "C"))}, want: "ann", signal: Admission},
		"admission of other content":    {facts: []testFact{attempted("ann", from("5", "D"))}, signal: ManagedFields},
		"admission without content":     {facts: []testFact{attempted("ann", from("5", ""))}, signal: ManagedFields},
		"admission from an older state": {facts: []testFact{attempted("ann", from("4", "C"))}, signal: ManagedFields},
		"admission of a retry": {
			facts: []testFact{attempted("ann", from("4", "C")), attempted("ann", from("5", "C"))}, want: "ann", signal: Admission,
		},
		"admission of the same, retried": {
			facts: []testFact{attempted("bob", from("4", "C")), attempted("ann", from("5", "C"))}, want: "ann", signal: Admission,
		},
		"admission of two": {
			facts: []testFact{attempted("ann", from("5", "C")), attempted("bob", from("5", "C"))}, signal: Unknown,
		},
		"admission of a creation": {
			operation: create, facts: []testFact{attempted("ann", from("", "C")).creating()}, want: "ann", signal: Admission,
		},
		"admission of another operation":  {facts: []testFact{attempted("ann", from("5", "C")).creating()}, signal: ManagedFields},
		"admission after an unseen state": {unseen: true, facts: []testFact{attempted("ann", from("5", "C"))}, want: "ann", signal: Admission},
		"from two unseen states": {
			unseen: true, facts: []testFact{attempted("ann", from("4", "C")), attempted("bob", from("5", "D"))}, signal: ManagedFields,
		},
		"of one user from unseen states": {
			unseen: true, facts: []testFact{attempted("ann", from("4", "C")), attempted("ann", from("5", "C"))}, want: "ann", signal: Admission,
		},

		"scale": {
			object: replicas(3), facts: []testFact{attempted("ann", from("5", ""), scaled(3))}, want: "ann", signal: Admission,
		},
		"scale to something else": {object: replicas(3), facts: []testFact{attempted("ann", from("5", ""), scaled(4))}, signal: ManagedFields},
		"scale without replicas":  {facts: []testFact{attempted("ann", from("5", ""), scaled(0))}, signal: ManagedFields},

		"name only":           {facts: []testFact{audited("ann", nameOnly)}, want: "ann", signal: Audit},
		"name only, of two":   {facts: []testFact{audited("ann", nameOnly), audited("bob", nameOnly)}, signal: Unknown},
		"name only, long ago": {facts: []testFact{audited("ann", nameOnly, begun(-5*time.Second, ms))}, signal: ManagedFields},
		// The same is seen of an update that only removes fields, which managedFields have no time of.
		"name only, delivered late": {
			object: func(b built) built { return b.writtenAt(time.Now().Add(-5 * time.Second)) },
			facts:  []testFact{audited("bob", nameOnly)}, signal: ManagedFields,
		},
		"name only, another operation":  {facts: []testFact{audited("ann", nameOnly).creating()}, signal: ManagedFields},
		"name only beside an exact one": {facts: []testFact{audited("bob", nameOnly), audited("ann")}, want: "ann", signal: Audit},

		"another object's uid": {
			facts:  []testFact{audited("ann", func(f *Fact) { f.UID = "u2" }), attempted("ann", from("5", "C"), func(f *Fact) { f.UID = "u2" })},
			signal: ManagedFields,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(20*ms, Audit, Admission)
				if !c.unseen {
					s.Observe(seen.event(update, ""))
				}
				object := configMap("web", "u1", "6")
				if c.object != nil {
					object = c.object(object)
				}
				operation := update
				if c.operation != "" {
					operation = c.operation
				}
				event := object.event(operation, "C")
				// Facts arrive before the event, one at a time after it, and in reverse order.
				s.checkAll(t, event, c.facts, c.want, c.signal)
			})
		})
	}
}

func replicas(n int64) func(built) built {
	return func(b built) built { return b.with(n, "spec", "replicas") }
}

// checkAll submits the event and adds facts about it shortly after.
func (s *fixture) checkAll(t *testing.T, event Event, facts []testFact, want string, signal Signal) {
	t.Helper()
	before := contradictionsSoFar(t)
	built := make([]Fact, 0, len(facts))
	for i, each := range facts {
		fact := factOf(each.user, each.signal, each.operation, event)
		each.change(&fact)
		fact.ID += string(rune('a' + i))
		built = append(built, fact)
	}
	s.submit(event)
	for i := range built {
		pass(time.Millisecond)
		s.Add(built[i:i+1], false)
	}
	pass(maxWait)
	got := s.deliveries()
	if len(got) != 1 {
		t.Fatalf("delivered %d times", len(got))
	}
	if got[0].author.Username != want || got[0].author.Signal != signal {
		t.Errorf("author = %q (%s), want %q (%s)", got[0].author.Username, got[0].author.Signal, want, signal)
	}
	if disagree := contradictionsSoFar(t) > before; disagree && signal != Unknown {
		t.Error("facts count as a contradiction")
	}
	if signal == ManagedFields && got[0].author.Manager != "kubectl" {
		t.Errorf("manager = %q", got[0].author.Manager)
	}
}

// TestDeletions tests which author facts name for the deletion of an object with resourceVersion 6.
func TestDeletions(t *testing.T) {
	const second = time.Second
	cases := map[string]struct {
		// requestedBefore is the time between the request to delete and the event; zero for an immediate deletion.
		requestedBefore time.Duration
		grace           int64
		facts           []testFact
		want            string
		signal          Signal
	}{
		"nothing":              {signal: Unknown},
		"audit":                {facts: []testFact{audited("ann").deleting()}, want: "ann", signal: Audit},
		"audit of another uid": {facts: []testFact{audited("ann", func(f *Fact) { f.UID = "u2" }).deleting()}, signal: Unknown},
		"two at once":          {facts: []testFact{audited("ann").deleting(), audited("eve").deleting()}, signal: Unknown},
		"admission":            {facts: []testFact{attempted("ann", from("6", "")).deleting()}, want: "ann", signal: Admission},
		"admission of two":     {facts: []testFact{attempted("ann").deleting(), attempted("bob").deleting()}, signal: Unknown},
		"admission and audit": {
			facts: []testFact{attempted("ann").deleting(), attempted("bob").deleting(), audited("bob").deleting()}, want: "bob", signal: Audit,
		},
		"admission and another audit": {facts: []testFact{attempted("ann").deleting(), audited("bob").deleting()}, signal: Unknown},
		"written just before":         {facts: []testFact{audited("bob"), audited("ann").deleting()}, want: "ann", signal: Audit},
		"name only":                   {facts: []testFact{audited("ann", nameOnly).deleting()}, want: "ann", signal: Audit},
		"name only, of two": {
			facts: []testFact{audited("ann", nameOnly).deleting(), audited("bob", nameOnly).deleting()}, signal: Unknown,
		},
		"collection": {facts: []testFact{audited("ann", collected("", "")).deleting()}, want: "ann", signal: Audit},
		"collection by name": {
			facts: []testFact{audited("ann", collected("", "metadata.name=web")).deleting()}, want: "ann", signal: Audit,
		},
		"collection of others":         {facts: []testFact{audited("ann", collected("app=other", "")).deleting()}, signal: Unknown},
		"collection by unknown fields": {facts: []testFact{audited("ann", collected("", "type=Opaque")).deleting()}, signal: Unknown},
		"collection and by name": {
			facts: []testFact{audited("bob", collected("", "")).deleting(), audited("ann", nameOnly).deleting()}, want: "ann", signal: Audit,
		},
		"collections of two": {
			facts: []testFact{audited("ann", collected("", "")).deleting(), audited("bob", collected("", "")).deleting()}, signal: Unknown,
		},

		"finalizer that another removed": {requestedBefore: 90 * second, facts: []testFact{
			audited("ann", lasting, begun(-90*second, 0), made("4")).deleting(), audited("controller"),
		}, want: "ann", signal: Audit},
		"grace period, and the kubelet's own request": {requestedBefore: 30 * second, grace: 30, facts: []testFact{
			audited("ann", lasting, begun(-30*second, 0), made("4")).deleting(), audited("kubelet").deleting(),
		}, want: "ann", signal: Audit},
		"requested twice": {requestedBefore: 4 * second, facts: []testFact{
			audited("bob", lasting, begun(-4*second+time.Millisecond, 0), made("5")).deleting(),
			audited("ann", lasting, begun(-4*second, 0), made("4")).deleting(),
		}, want: "ann", signal: Audit},
		"requested twice with one response": {requestedBefore: 4 * second, facts: []testFact{
			audited("bob", lasting, begun(-4*second, 0), made("4")).deleting(),
			audited("ann", lasting, begun(-4*second, 0), made("4")).deleting(),
		}, signal: Unknown},
		"requested at another time": {
			requestedBefore: 90 * second, facts: []testFact{audited("ann", lasting, made("4")).deleting()}, signal: Unknown,
		},
		"requested, by admission": {
			requestedBefore: 90 * second, facts: []testFact{attempted("ann", lasting, begun(-90*second, 0)).deleting()},
			want: "ann", signal: Admission,
		},
		"requested, by name": {
			requestedBefore: 9 * second, facts: []testFact{audited("ann", nameOnly, begun(-9*second, 0)).deleting()}, want: "ann", signal: Audit,
		},
		"requested, by a collection": {
			requestedBefore: 9 * second,
			facts:           []testFact{audited("ann", collected("", ""), begun(-9*second, 0)).deleting()}, want: "ann", signal: Audit,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(20*time.Millisecond, Audit, Admission)
				object := configMap("web", "u1", "6")
				if c.requestedBefore != 0 {
					object = object.deletedAt(time.Now().Add(-c.requestedBefore), c.grace)
				}
				s.checkAll(t, object.event(deleted, ""), c.facts, c.want, c.signal)
			})
		})
	}
}

// TestNamespaceDeletions checks that the content of a deleted namespace is attributed to the namespace controller, with the
// user who deleted the namespace.
func TestNamespaceDeletions(t *testing.T) {
	inBubble(t, Config{Wanted: func(o Object) bool { return o.Resource == "configmaps" }}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{{
			ID: "1", Signal: Audit, Operation: deleted, Resource: "namespaces", Name: "shop", UID: "ns", After: "3", Lasting: true,
			Begun: time.Now(), Ended: time.Now(), Actor: Actor{Username: "ann"},
		}}, false)
		pass(time.Hour)
		event := configMap("web", "u1", "6").event(deleted, "")
		fact := factOf(namespaceController, Audit, deleted, event)
		s.Add([]Fact{fact}, false)
		s.submit(event)
		pass(maxWait)
		if got := s.deliveries(); len(got) != 1 || got[0].author.Username != namespaceController || got[0].author.NamespaceDeletedBy != "ann" {
			t.Errorf("delivered %+v", got)
		}
	})
}

// TestNameOnlyExplainsOneChange checks that a fact without resourceVersion explains one change only. The next change may be
// from a user who is not audited.
func TestNameOnlyExplainsOneChange(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Audit)
		first := configMap("web", "u1", "6").event(update, "C")
		fact := factOf("ann", Audit, update, first)
		nameOnly(&fact)
		s.Add([]Fact{fact}, false)
		s.submit(first)
		s.submit(configMap("web", "u1", "7").event(update, "D"))
		pass(maxWait)
		got := s.deliveries()
		if len(got) != 2 || got[0].author.Username != "ann" || got[1].author.Signal != Unknown {
			t.Errorf("delivered %+v", got)
		}
	})
}

// TestNameOnlyExplainsTheChangeToEachController checks that a fact explains a change to each controller.
func TestNameOnlyExplainsTheChangeToEachController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := configMap("web", "u1", "6").event(update, "C")
		fact := factOf("ann", Audit, update, event)
		nameOnly(&fact)
		facts := &log{facts: []Fact{fact}}
		var mutex sync.Mutex
		var authors []string
		ctx, cancel := context.WithCancel(t.Context())
		var group wait.Group
		for _, controller := range []string{"mirror", "catalog"} {
			joiner := NewJoiner(Config{Controller: controller, MaxWait: maxWait, Facts: facts})
			joiner.Start(ctx, &group)
			joiner.Observe(event)
			err := joiner.Submit(ctx, event, func(_ context.Context, author Author) {
				mutex.Lock()
				defer mutex.Unlock()
				authors = append(authors, author.Username)
			})
			if err != nil {
				t.Error(err)
			}
		}
		pass(maxWait)
		cancel()
		group.Wait()
		if fmt.Sprint(authors) != "[ann ann]" {
			t.Errorf("authors of the controllers = %q", authors)
		}
	})
}
