// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// signals configure how facts and events are sent from the cluster to the Joiner.
type signals struct {
	audit, admission bool
	// lost is n if one in n facts is lost, 0 if none is.
	lost int
	// late is the maximum delay of facts and events.
	factsLate, eventsLate time.Duration
	// auditLate is the maximum delay of audit facts; 0 means late.
	auditLate time.Duration
	// gaps makes the watch occasionally miss events and restart.
	gaps bool
}

func (s signals) delayed(facts, events time.Duration) signals {
	s.factsLate, s.eventsLate = facts, events
	return s
}

func (s signals) losing(oneIn int) signals { s.lost = oneIn; return s }
func (s signals) interrupted() signals     { s.gaps = true; return s }

// play simulates users who change a few objects, and returns the deliveries with the actual authors.
func play(t *testing.T, s *fixture, seed uint64, requestOptions requestOptions, signals signals) []outcome {
	changes := make(chan timed[change], 100_000)
	var pendingFacts sync.WaitGroup
	random := lockedRand{random: rand.New(rand.NewPCG(seed, 0))}
	c := &cluster{requestOptions: requestOptions, objects: map[string]*state{}, locks: map[string]chan struct{}{}}
	c.populate()
	c.seen = func(one change) { changes <- timed[change]{one, time.Now().Add(random.upTo(signals.eventsLate))} }
	c.send = func(fact Fact) {
		if fact.Signal == Audit && !signals.audit || fact.Signal == Admission && !signals.admission {
			return
		}
		for range 1 + random.upTo(5)/4 { // one in five is sent twice
			if signals.lost > 0 && random.upTo(time.Duration(signals.lost)) == 0 {
				continue
			}
			late := signals.factsLate
			if fact.Signal == Audit && signals.auditLate > 0 {
				late = signals.auditLate
			}
			pendingFacts.Go(func() {
				time.Sleep(random.upTo(late)) //nolint:forbidigo // the clock of a bubble
				s.Add([]Fact{fact}, false)
			})
		}
	}
	var watching, working sync.WaitGroup
	var want []change
	watching.Go(func() { want = watch(s, changes, signals.gaps) })
	for _, signal := range []Signal{Audit, Admission} {
		c.send(Fact{ID: "first", Signal: signal, Operation: update, Resource: "configmaps", Namespace: "shop", Name: "first"})
	}
	for user := range 5 {
		working.Go(func() { work(c, fmt.Sprintf("user-%d", user), rand.New(rand.NewPCG(seed, uint64(user)+1))) })
	}
	working.Wait()
	pendingFacts.Wait()
	close(changes)
	watching.Wait()
	pass(2 * maxWait)
	return matched(t, s.deliveries(), want)
}

type timed[T any] struct {
	value T
	at    time.Time
}

type lockedRand struct {
	mutex  sync.Mutex
	random *rand.Rand
}

func (r *lockedRand) upTo(d time.Duration) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if d <= 0 {
		return 0
	}
	return time.Duration(r.random.Int64N(int64(d)))
}

func work(c *cluster, user string, random *rand.Rand) {
	time.Sleep(time.Second) //nolint:forbidigo // the clock of a bubble
	for range 250 {
		time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) //nolint:forbidigo // the clock of a bubble
		name := c.requestOptions.anyObject(random)
		(&request{cluster: c, random: random, user: user}).do(name)
		if random.IntN(10) == 0 {
			(&request{cluster: c, random: random, user: "controller"}).finish(name)
		}
	}
}

// watch submits the events to the Joiner in order, as the watch of one type does. It returns the submitted events.
func watch(s *fixture, changes <-chan timed[change], gaps bool) (submitted []change) {
	var gapUntil time.Time
	s.Listed(configMaps, "")
	for one := range changes {
		time.Sleep(time.Until(one.at)) //nolint:forbidigo // the clock of a bubble
		switch {
		case gaps && one.value.state.version%100 == 50:
			gapUntil = time.Now().Add(200 * time.Millisecond)
			continue
		case time.Now().Before(gapUntil):
			continue
		case !gapUntil.IsZero():
			gapUntil = time.Time{}
			s.Listed(configMaps, "")
		}
		event := one.value.event()
		if !one.value.content {
			s.Observe(event)
			continue
		}
		submitted = append(submitted, one.value)
		s.submit(event)
	}
	return submitted
}

// outcome is the actual author of a change and the one that was found.
type outcome struct {
	change change
	found  delivery
}

func (o outcome) right() bool { return o.found.author.Username == o.change.author }
func (o outcome) wrong() bool { return o.found.author.Known() && !o.right() }

// matched checks that every event was delivered once, and those of one object in order.
func matched(t *testing.T, got []delivery, want []change) []outcome {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events submitted, %d delivered", len(want), len(got))
	}
	next := map[string][]change{}
	for _, one := range want {
		next[one.state.name] = append(next[one.state.name], one)
	}
	outcomes := make([]outcome, 0, len(got))
	for _, each := range got {
		name := each.event.Object.GetName()
		first := next[name][0]
		if each.event.Object.GetResourceVersion() != versionOf(first.state) {
			t.Fatalf("%s: delivered version %s, want %d", name, each.event.Object.GetResourceVersion(), first.state.version)
		}
		next[name] = next[name][1:]
		outcomes = append(outcomes, outcome{first, each})
	}
	return outcomes
}

// TestAuthorsOfABusyCluster checks that no change is attributed to a wrong user, whatever happens to facts, and that the author is found
// if the signals allow it.
func TestAuthorsOfABusyCluster(t *testing.T) {
	const ms = time.Millisecond
	serialized, concurrent, racing := requestOptions{serialized: true}, requestOptions{ownContent: true}, requestOptions{}
	// With these options, no request conflicts with or repeats the change of another user.
	careful, apart := requestOptions{serialized: true, distinctFailures: true}, requestOptions{ownContent: true, distinctFailures: true}
	audit := signals{audit: true, factsLate: 300 * ms, eventsLate: 20 * ms}
	admission := signals{admission: true, factsLate: 30 * ms, eventsLate: 20 * ms}
	both := signals{audit: true, admission: true, factsLate: 300 * ms, eventsLate: 20 * ms}
	cases := map[string]struct {
		requestOptions requestOptions
		signals        signals
		// right is the minimum share of changes whose author is found.
		right float64
	}{
		"audit, serialized":           {serialized, audit, 1},
		"audit, concurrent":           {concurrent, audit, 1},
		"audit, racing":               {racing, audit, 0.97},
		"audit, events late":          {concurrent, audit.delayed(300*ms, 500*ms), 0.99}, // a fact may be later than all before it
		"audit, watch with gaps":      {concurrent, audit.interrupted(), 1},
		"both, serialized":            {serialized, both, 1},
		"both, concurrent":            {concurrent, both, 1},
		"both, racing":                {racing, both, 0.97},
		"admission, careful":          {careful, admission, 0.99},
		"admission, apart":            {apart, admission, 0.99},
		"admission, serialized":       {serialized, admission, 0.85},
		"admission, concurrent":       {concurrent, admission, 0.95},
		"admission, racing":           {racing, admission, 0.85},
		"admission, watch with gaps":  {racing, admission.interrupted(), 0.7},
		"both, one in four lost":      {careful, both.delayed(900*ms, 300*ms).losing(4), 0.8},
		"audit, one in four lost":     {careful, audit.losing(4), 0.7},
		"admission, one in four lost": {careful, admission.losing(4), 0.6},
		"nothing":                     {racing, signals{eventsLate: 20 * ms}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				inBubble(t, Config{}, func(t *testing.T, s *fixture) {
					outcomes := play(t, s, seed, c.requestOptions, c.signals)
					right := 0
					for _, each := range outcomes {
						if each.wrong() {
							t.Errorf("seed %d: %s of %s %d: author is %s, found %s by %s", seed, each.change.operation, each.change.state.name,
								each.change.state.version, each.change.author, each.found.author.Username, each.found.author.Signal)
						}
						if each.right() {
							right++
						}
					}
					share := float64(right) / float64(len(outcomes))
					t.Logf("seed %d: %d changes, %.2f %% right", seed, len(outcomes), 100*share)
					if share < c.right {
						t.Errorf("seed %d: %.4f are right, want %.4f", seed, share, c.right)
					}
				})
			}
		})
	}
}

// TestFirstChangesOfABusyCluster checks that with both signals, from the first change after a start on, a change is delivered long
// before its audit fact, unless others attempt the same or a review is missing; and that no author is wrong.
func TestFirstChangesOfABusyCluster(t *testing.T) {
	const ms = time.Millisecond
	both := signals{audit: true, admission: true, factsLate: 20 * ms, auditLate: 300 * ms, eventsLate: 20 * ms}
	cases := map[string]struct {
		requestOptions requestOptions
		signals        signals
		// right is the minimum share of changes whose author is found, soon of those delivered within 100 ms.
		right, soon float64
	}{
		"careful":             {requestOptions{existing: 1000, distinctFailures: true}, both, 0.99, 0.95},
		"racing":              {requestOptions{existing: 1000}, both, 0.97, 0.9},
		"few objects, racing": {requestOptions{existing: 20}, both, 0.97, 0.6},
		"one in four lost":    {requestOptions{existing: 1000, distinctFailures: true}, both.losing(4), 0.8, 0},
		"watch with gaps":     {requestOptions{existing: 1000}, both.interrupted(), 0.97, 0.6},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				inBubble(t, Config{}, func(t *testing.T, s *fixture) {
					outcomes := play(t, s, seed, c.requestOptions, c.signals)
					right, soon := 0, 0
					for _, each := range outcomes {
						if each.wrong() {
							t.Errorf("seed %d: %s of %s %d: author is %s, found %s by %s", seed, each.change.operation, each.change.state.name,
								each.change.state.version, each.change.author, each.found.author.Username, each.found.author.Signal)
						}
						if each.right() {
							right++
						}
						if each.found.at.Sub(each.found.submitted) <= 100*ms {
							soon++
						}
					}
					rightShare, soonShare := float64(right)/float64(len(outcomes)), float64(soon)/float64(len(outcomes))
					t.Logf("seed %d: %d changes, %.2f %% right, %.2f %% within 100 ms", seed, len(outcomes), 100*rightShare, 100*soonShare)
					if rightShare < c.right || soonShare < c.soon {
						t.Errorf("seed %d: want %.2f %% right, %.2f %% within 100 ms", seed, 100*c.right, 100*c.soon)
					}
				})
			}
		})
	}
}
