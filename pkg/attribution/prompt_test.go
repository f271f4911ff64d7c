// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// auditLag is the lag of audit facts in the tests of this file.
const auditLag = 300 * time.Millisecond

// reviewed is a change of web from resourceVersion 5 to 6 that both signals report.
type reviewed struct {
	*fixture
	// event is the change.
	event Event
}

// review adds the review of an attempt at the change.
func (r *reviewed) review(user string, changes ...func(*Fact)) {
	fact := factOf(user, Admission, update, r.event)
	from("5", "C")(&fact)
	for _, change := range changes {
		change(&fact)
	}
	fact.ID += fact.Before
	r.Add([]Fact{fact}, false)
}

// unreviewedChange adds an audit fact about a change of a ConfigMap without a review.
func (r *reviewed) unreviewedChange(namespace string) {
	change := configMap("other", "u2", "4").with(namespace, "metadata", "namespace").event(update, "D")
	r.Add([]Fact{factOf("bob", Audit, update, change)}, false)
	r.submit(change)
	pass(maxWait)
}

// TestOneCandidate checks that a change with one candidate waits for other reviews only, from the first change on. If
// another user may have made it whose review is missing, it waits for the audit and is not attributed to the candidate.
func TestOneCandidate(t *testing.T) {
	const ms = time.Millisecond
	listed := func(r *reviewed) { r.Listed(configMaps, "") }
	prompt := func(r *reviewed) { r.review("ann") }
	cases := map[string]struct {
		// before runs before the change.
		before []func(*reviewed)
		// waits is set if the change waits for the audit.
		waits bool
	}{
		"from a known state": {
			before: []func(*reviewed){func(r *reviewed) { r.Observe(configMap("web", "u1", "5").event(update, "")) }, prompt},
		},
		"the first since the watch started": {before: []func(*reviewed){listed, prompt}},
		"the first since the watch of its namespace started": {
			before: []func(*reviewed){func(r *reviewed) { r.Listed(configMaps, "shop") }, prompt},
		},
		"the first since the watch started again": {before: []func(*reviewed){
			func(r *reviewed) { r.Observe(configMap("web", "u1", "3").event(update, "")) }, listed, prompt,
		}},
		"the first since the object was forgotten": {before: []func(*reviewed){
			listed,
			func(r *reviewed) {
				for i := range 3 * versionHistoryLimit {
					r.Observe(configMap("many", strconv.Itoa(i), "1").event(update, ""))
				}
			},
			prompt,
		}},
		"twice by one user": {before: []func(*reviewed){
			listed, prompt, func(*reviewed) { pass(3 * time.Second) }, prompt,
		}},
		"shortly after others that were reviewed before the term began": {before: []func(*reviewed){
			func(r *reviewed) {
				made := factOf("bob", Admission, create, r.event)
				from("", "A")(&made)
				changed := factOf("bob", Admission, update, r.event)
				from("3", "B")(&changed)
				r.Add([]Fact{made, changed}, true)
				pass(clockSkew + ms)
			}, listed, prompt,
		}},
		"beside an attempt of something else": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.review("bob", from("5", "D")) }, prompt,
		}},
		"beside a change of another namespace without a review": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.unreviewedChange("warehouse") }, prompt,
		}},
		"long after a change without a review": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.unreviewedChange("shop") }, func(*reviewed) { pass(unreviewedLifetime) }, prompt,
		}},

		"of a watch that has not started": {before: []func(*reviewed){prompt}, waits: true},
		"reviewed before the watch started": {before: []func(*reviewed){
			prompt, func(*reviewed) { pass(ms) }, listed,
		}, waits: true},
		"reviewed before the watch started again": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.Observe(configMap("web", "u1", "3").event(update, "")) }, prompt, func(*reviewed) { pass(ms) }, listed,
		}, waits: true},
		"reviewed before the object was forgotten": {before: []func(*reviewed){
			listed, prompt,
			func(r *reviewed) {
				pass(ms)
				for i := range versionHistoryLimit + 1 {
					r.Observe(configMap("many", strconv.Itoa(i), "1").event(update, ""))
				}
			},
		}, waits: true},
		"reviewed before the term began": {before: []func(*reviewed){
			listed, func(r *reviewed) {
				fact := factOf("ann", Admission, update, r.event)
				from("5", "C")(&fact)
				r.Add([]Fact{fact}, true)
			},
		}, waits: true},
		"reviewed long ago": {before: []func(*reviewed){listed, prompt, func(*reviewed) { pass(promptLimit + ms) }}, waits: true},
		"from an older state": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.review("bob", from("4", "D")) }, prompt,
		}, waits: true},
		"tried again by one user": {before: []func(*reviewed){
			listed, func(r *reviewed) { r.review("ann", from("4", "C")) }, prompt,
		}, waits: true},
		"wanted by another as well": {before: []func(*reviewed){listed, func(r *reviewed) { r.review("bob") }, prompt}, waits: true},
		"after a change without a review": {
			before: []func(*reviewed){listed, func(r *reviewed) { r.unreviewedChange("shop") }, prompt}, waits: true,
		},
	}
	for name, c := range cases {
		for _, author := range []string{"ann", "bob"} {
			if author == "bob" && !c.waits {
				continue // Without bob's review, his change cannot be distinguished from ann's.
			}
			t.Run(fmt.Sprintf("%s, by %s", name, author), func(t *testing.T) {
				inBubble(t, Config{}, func(t *testing.T, s *fixture) {
					s.wake(0, Admission)
					s.wake(auditLag, Audit)
					r := &reviewed{fixture: s, event: configMap("web", "u1", "6").event(update, "C")}
					for _, step := range c.before {
						step(r)
					}
					s.resetDeliveries()
					began := time.Now()
					s.submit(r.event)
					pass(auditLag)
					s.Add([]Fact{factOf(author, Audit, update, r.event)}, false)
					pass(maxWait)
					got := s.deliveries()
					if len(got) != 1 {
						t.Fatalf("delivered %d times", len(got))
					}
					if after := got[0].at.Sub(began); c.waits && after < auditLag || !c.waits && after != graceMargin {
						t.Errorf("delivered after %s; the audit fact arrives after %s", after, auditLag)
					}
					if by := got[0].author; by.Known() && by.Username != author {
						t.Errorf("author = %s by %s, want %s", by.Username, by.Signal, author)
					} else if !c.waits && !by.Known() {
						t.Error("author is missing")
					}
				})
			})
		}
	}
}

// TestFirstChange checks that the first change, whose review is the first fact, waits no longer than later ones.
func TestFirstChange(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Listed(configMaps, "")
		s.Add([]Fact{{ID: "1", Signal: Audit, Resource: "configmaps", Name: "x", Begun: time.Now()}}, true)
		pass(time.Second)
		r := &reviewed{fixture: s, event: configMap("web", "u1", "6").event(update, "C")}
		r.review("ann")
		began := time.Now()
		s.submit(r.event)
		pass(maxWait)
		got := s.deliveries()
		if len(got) != 1 || got[0].author.Username != "ann" || got[0].author.Signal != Admission || got[0].at.Sub(began) != graceMargin {
			t.Errorf("delivered %+v, want it after %s", got, graceMargin)
		}
	})
}

// TestAttemptBeforeTheWatch checks that an attempt before the watch started, from another state than later ones, is not
// taken for the change, even without audit.
func TestAttemptBeforeTheWatch(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(0, Admission)
		r := &reviewed{fixture: s, event: configMap("web", "u1", "6").event(update, "C")}
		r.review("ann", from("4", "C"))
		pass(2 * clockSkew)
		s.Listed(configMaps, "")
		r.review("bob", from("5", "D"))
		s.submit(r.event)
		pass(maxWait)
		if got := s.deliveries(); len(got) != 1 || got[0].author.Known() {
			t.Errorf("delivered %+v, want no author", got)
		}
	})
}

// TestOneCandidateOfADeletion checks that a deletion waits for the audit if its only review may belong to another user's attempt.
func TestOneCandidateOfADeletion(t *testing.T) {
	for name, late := range map[string]time.Duration{"at once": 0, "long after its review": promptLimit + time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *fixture) {
				s.wake(0, Admission)
				s.wake(auditLag, Audit)
				event := configMap("web", "u1", "6").event(deleted, "")
				s.Add([]Fact{factOf("ann", Admission, deleted, event)}, false)
				pass(late)
				began := time.Now()
				s.submit(event)
				pass(auditLag)
				s.Add([]Fact{factOf("ann", Audit, deleted, event)}, false)
				pass(maxWait)
				got := s.deliveries()
				if len(got) != 1 || got[0].author.Username != "ann" || (got[0].at.Sub(began) >= auditLag) != (late > 0) {
					t.Errorf("delivered %+v after %s", got, got[0].at.Sub(began))
				}
			})
		})
	}
}

// TestUnreviewedCollections checks that collections with incomplete reviews take bounded memory. Beyond the limit, no
// collection counts as complete.
func TestUnreviewedCollections(t *testing.T) {
	u, now := unreviewed{lately[Object]{}}, time.Now()
	object := func(i int) Object {
		return Object{GroupResource: configMaps.GroupResource(), Namespace: strconv.Itoa(i), Name: "web"}
	}
	for i := range unreviewedLimit {
		u.note(object(i), now)
	}
	if !u.has(object(0), now) || u.has(object(-1), now) {
		t.Error("collection matches another one")
	}
	u.note(object(unreviewedLimit), now)
	if !u.has(object(-1), now) || len(u.lately) > unreviewedLimit+1 {
		t.Errorf("%d collections are stored, and one beyond the limit counts as complete", len(u.lately))
	}
	u.expire(unreviewedLifetime, now.Add(unreviewedLifetime))
	if len(u.lately) != 0 {
		t.Errorf("%d expired collections are still stored", len(u.lately))
	}
}
