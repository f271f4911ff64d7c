// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// log is a source of stored facts that records the calls of Forget and StoreLags.
type log struct {
	facts     []Fact
	forgotten []types.UID
	mutex     sync.Mutex
	lags      []Lags
	failures  int
}

func (l *log) Follow(ctx context.Context, receive func([]Fact, bool)) {
	receive(l.facts, true)
	<-ctx.Done()
}

func (l *log) Forget(uids ...types.UID) { l.forgotten = append(l.forgotten, uids...) }

// Lags returns the lags that were stored last.
func (l *log) Lags(context.Context, string) (Lags, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.lags) == 0 {
		return Lags{}, nil
	}
	return l.lags[len(l.lags)-1], nil
}

// StoreLags fails as often as failures says.
func (l *log) StoreLags(_ context.Context, _ string, lags Lags) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.failures > 0 {
		l.failures--
		return errors.New("no space")
	}
	l.lags = append(l.lags, lags)
	return nil
}

// timesOf returns how long after a time the objects were delivered.
func timesOf(deliveries []delivery, since time.Time) map[string]time.Duration {
	times := map[string]time.Duration{}
	for _, each := range deliveries {
		times[each.event.Object.GetName()] = each.at.Sub(since)
	}
	return times
}

// TestMissingFactsDelayOnlyTheirObject checks that missing facts about one object do not delay another, and their own
// object no longer than facts are late, if the audit has reported a later request.
func TestMissingFactsDelayOnlyTheirObject(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		const lag = 200 * time.Millisecond
		s.wake(lag, Audit, Admission)
		s.submit(configMap("before", "before", "1").event(update, ""))
		pass(2 * maxWait)
		began := time.Now()
		for i := range 500 {
			name := fmt.Sprintf("missing-%d", i)
			s.submit(configMap(name, name, "1").event(update, ""))
		}
		reported := configMap("reported", "s", "6").event(create, "C")
		fact := factOf("ann", Admission, create, reported)
		fact.Content = "C"
		s.Add([]Fact{fact}, false)
		s.submit(reported)
		pass(lag)
		s.Add([]Fact{factOf("ann", Audit, create, reported)}, false)
		pass(10 * lag)
		times := timesOf(s.deliveries(), began)
		delete(times, "before")
		if len(times) != 501 {
			t.Fatalf("%d events were delivered", len(times))
		}
		for name, after := range times {
			if name == "reported" && after != 0 {
				t.Errorf("%s was delivered after %s although its facts are complete", name, after)
			} else if grace := lag + lag/2 + graceMargin; after > grace {
				t.Errorf("%s was delivered after %s, want at most %s", name, after, grace)
			}
		}
	})
}

// TestBlockedDelivery checks that a delivery that blocks delays its own object and no other.
func TestBlockedDelivery(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		open := make(chan struct{})
		var got []string
		var mutex sync.Mutex
		deliver := func(name string, wait bool) func(context.Context, Author) {
			return func(context.Context, Author) {
				if wait {
					<-open
				}
				mutex.Lock()
				defer mutex.Unlock()
				got = append(got, name)
			}
		}
		var submitting sync.WaitGroup
		submitting.Go(func() {
			_ = s.Submit(t.Context(), configMap("web", "u1", "1").event(update, ""), deliver("web 1", true))
		})
		synctest.Wait()
		for _, version := range []string{"2", "3"} {
			if err := s.Submit(t.Context(), configMap("web", "u1", version).event(update, ""), deliver("web "+version, false)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Submit(t.Context(), configMap("other", "u2", "4").event(update, ""), deliver("other", false)); err != nil {
			t.Fatal(err)
		}
		web := Object{GroupResource: configMaps.GroupResource(), Namespace: "shop", Name: "web"}
		if !s.Waiting(web) {
			t.Error("Waiting(web) = false during a blocked delivery")
		}
		close(open)
		submitting.Wait()
		synctest.Wait()
		if want := "[other web 1 web 2 web 3]"; fmt.Sprint(got) != want {
			t.Errorf("delivered %v, want %s", got, want)
		}
		if s.Waiting(web) {
			t.Error("Waiting(web) = true after all deliveries")
		}
	})
}

// TestFactsOfManyDeliveries checks that a request that deletes a collection explains the deletion of each object, on several goroutines,
// for `go test -race`. A fact that names one object explains one event only.
func TestFactsOfManyDeliveries(t *testing.T) {
	const objects = 200
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Audit)
		all := factOf("ann", Audit, deleted, configMap("", "", "").event(deleted, ""))
		collected("", "")(&all)
		s.Add([]Fact{all}, false)
		for i := range objects {
			name := fmt.Sprintf("web-%d", i)
			if i%2 == 0 {
				one := factOf("bob", Audit, deleted, configMap(name, "", "").event(deleted, ""))
				one.ID = name
				s.Add([]Fact{one}, false)
			}
			for uid := range 2 {
				s.submit(configMap(name, fmt.Sprint(name, uid), "6").event(deleted, ""))
			}
		}
		pass(maxWait)
		by := map[string]int{}
		for _, each := range s.deliveries() {
			by[each.author.Username]++
		}
		if want := map[string]int{"ann": objects, "bob": objects / 2, "": objects / 2}; !maps.Equal(by, want) {
			t.Errorf("delivered by user: %v, want %v", by, want)
		}
	})
}

// TestEndedContext checks that events of a watch that has ended are not delivered and delay no others.
func TestEndedContext(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{{ID: "1", Signal: Audit, Resource: "configmaps", Name: "x"}}, false)
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Submit(ctx, configMap("web", "u1", "1").event(update, ""), func(context.Context, Author) { t.Error("delivered") })
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := s.Submit(ctx, configMap("web", "u1", "2").event(update, ""), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("Submit returned %v", err)
		}
		s.submit(configMap("web", "u1", "2").event(update, ""))
		pass(2 * maxWait)
		if got := s.deliveries(); len(got) != 1 {
			t.Errorf("%d events were delivered", len(got))
		}
	})
}

// TestWaitingLimit checks that when too many events wait, the one that is due first is delivered with the facts so far.
func TestWaitingLimit(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{{ID: "1", Signal: Audit, Resource: "configmaps", Name: "x"}}, false)
		for i := range waitingLimit {
			name := fmt.Sprintf("object-%d", i)
			s.submit(configMap(name, name, "1").event(update, ""))
			if i == 0 {
				pass(time.Millisecond)
			}
		}
		if got := s.deliveries(); len(got) != 0 {
			t.Fatalf("%d events were delivered", len(got))
		}
		s.submit(configMap("last", "last", "1").event(update, ""))
		got := s.deliveries()
		if len(got) != 1 || got[0].event.Object.GetName() != "object-0" {
			t.Fatalf("%d events were delivered", len(got))
		}
		pass(2 * maxWait)
		if got := s.deliveries(); len(got) != waitingLimit+1 {
			t.Errorf("%d events were delivered", len(got))
		}
	})
}

func TestFind(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		state := configMap("web", "u1", "6").event(update, "C")
		s.Add([]Fact{factOf("ann", Audit, update, state), func() Fact {
			f := factOf("bob", Admission, update, state)
			f.Content = "C"
			return f
		}()}, true)
		gone := configMap("gone", "u2", "9").event(deleted, "")
		s.Add([]Fact{factOf("ann", Audit, deleted, gone)}, true)
		storedFact := configMap("storedFact", "u3", "9").event(deleted, "")
		long := factOf("cem", Audit, deleted, storedFact)
		long.Lasting, long.After = true, "8"
		s.Add([]Fact{long}, true)
		pass(30 * time.Second)
		// A request that finds a state that was written long before did not write it.
		s.Add([]Fact{factOf("flux", Audit, update, state)}, false)
		cases := map[string]struct {
			event Event
			want  string
		}{
			"state":                 {state, "ann"},
			"another state":         {configMap("web", "u1", "7").event(update, "C"), ""},
			"another uid":           {configMap("web", "u9", "6").event(update, "C"), ""},
			"gone":                  {gone, "ann"},
			"gone, by name":         {configMap("gone", "", "").event(deleted, ""), "ann"},
			"gone, after long":      {configMap("storedFact", "", "").event(deleted, ""), "cem"},
			"gone, without facts":   {configMap("never", "", "").event(deleted, ""), ""},
			"gone, but another uid": {configMap("gone", "u9", "").event(deleted, ""), ""},
		}
		for name, c := range cases {
			author := s.Find(c.event)
			if author.Username != c.want || (author.Signal == Audit) != (c.want != "") {
				t.Errorf("%s: author = %+v, want %q", name, author, c.want)
			}
		}
		pass(time.Minute)
		if author := s.Find(gone); author.Known() {
			t.Errorf("author = %+v after the fact has expired", author)
		}
		if author := s.Find(configMap("storedFact", "", "").event(deleted, "")); author.Username != "cem" {
			t.Errorf("author = %+v", author)
		}
	})
}

// TestForget checks that lasting facts are removed some time after the deletion of their object.
func TestForget(t *testing.T) {
	facts := &log{}
	inBubble(t, Config{Facts: facts}, func(t *testing.T, s *fixture) {
		for _, uid := range []string{"u1", "u2"} {
			fact := factOf("ann", Audit, deleted, configMap("web-"+uid, uid, "6").event(deleted, ""))
			fact.Lasting = true
			s.Add([]Fact{fact}, false)
		}
		s.Observe(configMap("web-u1", "u1", "7").event(deleted, ""))
		pass(2 * time.Minute)
		if forgotten := facts.forgotten; fmt.Sprint(forgotten) != "[u1]" {
			t.Errorf("Forget was called with %v", forgotten)
		}
		if len(s.facts.lasting.ids) != 1 {
			t.Errorf("%d lasting facts, want 1", len(s.facts.lasting.ids))
		}
	})
}

func TestUnwantedFactsAreDropped(t *testing.T) {
	wanted := func(o Object) bool { return o.Resource == "configmaps" && o.Namespace == "shop" }
	inBubble(t, Config{Wanted: wanted}, func(t *testing.T, s *fixture) {
		fact := factOf("ann", Audit, update, configMap("web", "u1", "6").event(update, ""))
		ofOtherType, ofOtherNamespace := fact, fact
		ofOtherType.ID, ofOtherType.Resource = "type", "leases"
		ofOtherNamespace.ID, ofOtherNamespace.Namespace = "namespace", "warm"
		s.Add([]Fact{ofOtherType, ofOtherNamespace}, false)
		if len(s.facts.recent.ids) != 0 {
			t.Error("unwanted facts are stored")
		}
		if state := s.Sources()[0]; state.LastFact.IsZero() {
			t.Error("source has no last fact")
		}
	})
}

// TestFindWithSeveralAuthors checks that no author is found if other users have written the object as well.
func TestFindWithSeveralAuthors(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.Add([]Fact{factOf("ann", Audit, update, configMap("web", "u1", "6").event(update, "C"))}, false)
		last := configMap("web", "u1", "7").event(update, "D")
		s.Add([]Fact{factOf("bob", Audit, update, last)}, false)
		if author := s.Find(last); author.Known() {
			t.Errorf("author = %+v", author)
		}
	})
}

// TestFindLastDeletion checks that a later record without a uid means that an earlier deletion is not the last.
func TestFindLastDeletion(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		old := factOf("ann", Audit, deleted, configMap("web", "u1", "6").event(deleted, ""))
		old.Lasting, old.After = true, "6"
		s.Add([]Fact{old}, false)
		pass(time.Hour)
		last := factOf("bob", Audit, deleted, configMap("web", "", "").event(deleted, ""))
		nameOnly(&last)
		s.Add([]Fact{last}, false)
		if author := s.Find(configMap("web", "", "").event(deleted, "")); author.Username == "ann" {
			t.Errorf("author = %+v", author)
		}
	})
}

// TestFindAfterEvent checks that a change that an event has reported is not found by a comparison, unless the event is
// still pending.
func TestFindAfterEvent(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *fixture) {
		s.wake(20*time.Millisecond, Admission, Audit)
		state := configMap("web", "u1", "6").event(update, "C")
		gone := configMap("gone", "u2", "9").event(deleted, "")
		s.submit(state)
		s.submit(gone)
		s.Add([]Fact{factOf("ann", Audit, update, state), factOf("ann", Audit, deleted, gone)}, false)
		for _, event := range []Event{state, gone} {
			if author := s.Find(event); author.Username != "ann" {
				t.Errorf("author = %+v while the event waits", author)
			}
		}
		pass(maxWait)
		for _, event := range []Event{state, gone, configMap("gone", "", "").event(deleted, "")} {
			if author := s.Find(event); author.Known() {
				t.Errorf("author = %+v after the event", author)
			}
		}
	})
}
