// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// cluster simulates an API server and its store. Requests take time, race with each other, and write with
// compare-and-swap, as those of an API server do.
type cluster struct {
	requestOptions requestOptions
	// send receives facts, seen receives events in the order of their resourceVersions.
	send func(Fact)
	seen func(change)

	mutex   sync.Mutex
	version int
	uids    int
	facts   int
	objects map[string]*state
	// locks serialize the requests for one object. They are channels, since a goroutine that waits for a mutex stops the
	// clock of a synctest bubble.
	locks map[string]chan struct{}
}

// requestOptions configure the requests in a cluster.
type requestOptions struct {
	// serialized serializes the requests for one object.
	serialized bool
	// ownContent makes each user write content that no other user writes.
	ownContent bool
	// distinctFailures makes failing attempts use content that no other user writes, and prevents requests from finding a
	// state that was just created. Otherwise the loss of a fact makes such an attempt look like the request whose fact
	// was lost.
	distinctFailures bool
	// existing is the number of objects that exist before the watch starts. Users then change any of these once or twice
	// each, instead of repeatedly creating and changing four.
	existing int
}

// populate creates the objects that exist before the watch starts.
func (c *cluster) populate() {
	for i := range c.requestOptions.existing {
		c.version++
		name := fmt.Sprintf("object-%d", i)
		c.objects[name] = &state{name: name, uid: c.newUID(), content: "A", version: c.version, made: time.Now()}
	}
}

// anyObject returns the name of an object for the next request of a user.
func (h requestOptions) anyObject(random *rand.Rand) string {
	count := 4
	if h.existing > 0 {
		count = h.existing
	}
	return fmt.Sprintf("object-%d", random.IntN(count))
}

// state is one version of an object. It is immutable.
type state struct {
	name, uid, content string
	version            int
	previous           *state
	finalizer          bool
	deletion           time.Time
	deletedBy          string
	made               time.Time
}

// change is an event and its actual author.
type change struct {
	operation v1alpha1.Operation
	state     *state
	author    string
	// content is set if the mirrored content has changed.
	content bool
}

// request is a request of one user.
type request struct {
	*cluster
	random *rand.Rand
	user   string
	begun  time.Time
}

// step advances the time by what an API server needs for a part of a request.
func (r *request) step() {
	pass := time.Millisecond + time.Duration(r.random.IntN(4_000))*time.Microsecond
	time.Sleep(pass) //nolint:forbidigo // the clock of a bubble
}

func (c *cluster) current(name string) *state {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.objects[name]
}

// swap replaces a state by the next one, nil for deletion, and fails if the state has changed meanwhile.
func (c *cluster) swap(old, next *state, name string, event change) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.objects[name] != old {
		return false
	}
	c.version++
	event.state.version, event.state.previous, event.state.made = c.version, old, time.Now()
	if next == nil {
		delete(c.objects, name)
	} else {
		c.objects[name] = next
	}
	c.seen(event)
	return true
}

func (c *cluster) newUID() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.uids++
	return "uid-" + strconv.Itoa(c.uids)
}

// report sends the facts of a request, as an API server does.
func (r *request) report(signal Signal, operation v1alpha1.Operation, of *state, fill func(*Fact)) {
	r.mutex.Lock()
	r.facts++
	id := strconv.Itoa(r.facts)
	r.mutex.Unlock()
	fact := Fact{
		ID: id, Signal: signal, Operation: operation, Resource: "configmaps", Namespace: "shop", Name: of.name,
		UID: types.UID(of.uid), Begun: time.Now(), Actor: Actor{Username: r.user},
	}
	if signal == Audit {
		fact.Begun, fact.Ended = r.begun, time.Now()
	}
	fill(&fact)
	r.send(fact)
}

func (r *request) audit(operation v1alpha1.Operation, of *state, fill func(*Fact)) {
	time.Sleep(time.Duration(r.random.IntN(900)) * time.Microsecond) //nolint:forbidigo // the clock of a bubble
	r.report(Audit, operation, of, fill)
}

func versionOf(s *state) string { return strconv.Itoa(s.version) }

// chance returns true with probability 1/n.
func (r *request) chance(in int) bool { return r.random.IntN(in) == 0 }

// do performs one request for one object.
func (r *request) do(name string) {
	if r.requestOptions.serialized {
		lock := r.lock(name)
		lock <- struct{}{}
		defer func() { <-lock }()
	}
	r.begun = time.Now()
	switch now := r.current(name); {
	case now == nil:
		r.create(name)
	case r.chance(12):
		r.remove(now)
	case r.chance(8):
		r.writeStatus(now)
	case r.chance(20):
		// A dry run produces no facts.
	default:
		r.write(now)
	}
}

func (c *cluster) lock(name string) chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.locks[name] == nil {
		c.locks[name] = make(chan struct{}, 1)
	}
	return c.locks[name]
}

// content returns the content that a request writes.
func (r *request) content(failing bool) string {
	if r.requestOptions.ownContent || failing && r.requestOptions.distinctFailures {
		return fmt.Sprintf("%s-%d", r.user, r.random.Uint64())
	}
	return [...]string{"A", "B", "C"}[r.random.IntN(3)]
}

func (r *request) create(name string) {
	refused := r.chance(6)
	next := &state{name: name, uid: r.newUID(), content: r.content(refused), finalizer: r.chance(2)}
	r.step()
	r.report(Admission, create, next, func(f *Fact) { f.Content = next.content })
	r.step()
	if refused || !r.swap(nil, next, name, change{operation: create, state: next, author: r.user, content: true}) {
		return
	}
	r.audit(create, next, func(f *Fact) { f.After = versionOf(next) })
}

// write performs an update, or a patch that is retried. The first attempt may start from a stale cached state.
func (r *request) write(now *state) {
	refused, patch := r.chance(6), r.chance(2)
	stale := !refused && patch && r.chance(4) && now.previous != nil && now.previous.uid == now.uid
	content := r.content(refused || stale)
	if !(r.requestOptions.distinctFailures && (refused || stale)) && r.chance(8) {
		content = now.content
	}
	from := now
	if stale {
		from = now.previous
	}
	for {
		if from.content == content && from == now && r.requestOptions.distinctFailures && time.Since(now.made) < 3*time.Second {
			return
		}
		r.step()
		r.report(Admission, update, from, func(f *Fact) { f.Before, f.Content = versionOf(from), content })
		r.step()
		if refused {
			return
		}
		if r.store(from, content) {
			return
		}
		if from = r.current(now.name); !patch || from == nil || from.uid != now.uid {
			return // the request fails
		}
		now = from
	}
}

// store writes content, unless it is unchanged or the state has changed meanwhile.
func (r *request) store(from *state, content string) bool {
	if from.content == content {
		if r.current(from.name) != from {
			return false
		}
		r.audit(update, from, func(f *Fact) { f.After = versionOf(from) })
		return true
	}
	next := *from
	next.content = content
	if !r.swap(from, &next, from.name, change{operation: update, state: &next, author: r.user, content: true}) {
		return false
	}
	r.audit(update, &next, func(f *Fact) { f.After = versionOf(&next) })
	return true
}

// writeStatus writes the status, which is neither reported nor mirrored.
func (r *request) writeStatus(now *state) {
	next := *now
	r.swap(now, &next, now.name, change{operation: update, state: &next})
}

func (r *request) remove(now *state) {
	refused := !r.requestOptions.distinctFailures && r.chance(6)
	again := !now.deletion.IsZero()
	if again && r.requestOptions.distinctFailures && time.Since(now.deletion) < 4*time.Second {
		return
	}
	r.step()
	r.report(Admission, deleted, now, func(f *Fact) { f.Before, f.Lasting = versionOf(now), now.finalizer })
	r.step()
	switch {
	case refused:
	case again:
		r.audit(deleted, now, func(f *Fact) { f.Lasting, f.After = true, versionOf(now) })
	case now.finalizer:
		next := *now
		next.deletion, next.deletedBy = time.Now().Truncate(time.Second), r.user
		if r.swap(now, &next, now.name, change{operation: update, state: &next}) {
			r.audit(deleted, &next, func(f *Fact) { f.Lasting, f.After = true, versionOf(&next) })
		}
	default:
		last := *now
		if r.swap(now, nil, now.name, change{operation: deleted, state: &last, author: r.user, content: true}) {
			r.audit(deleted, &last, func(*Fact) {})
		}
	}
}

// finish removes the finalizer of a terminating object by a patch, which deletes it.
func (r *request) finish(name string) {
	r.begun = time.Now()
	now := r.current(name)
	if now == nil || now.deletion.IsZero() {
		return
	}
	r.step()
	r.report(Admission, update, now, func(f *Fact) { f.Before, f.Content = versionOf(now), now.content })
	last := *now
	if r.swap(now, nil, name, change{operation: deleted, state: &last, author: now.deletedBy, content: true}) {
		r.audit(update, &last, func(f *Fact) { f.After = versionOf(&last) })
	}
}

// event returns the watch event of a change.
func (c change) event() Event {
	object := configMap(c.state.name, c.state.uid, versionOf(c.state)).writtenAt(c.state.made)
	if !c.state.deletion.IsZero() {
		object = object.deletedAt(c.state.deletion, 0)
	}
	return object.event(c.operation, c.state.content)
}
