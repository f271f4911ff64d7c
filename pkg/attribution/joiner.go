// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// waitingLimit bounds the events that wait.
	waitingLimit = 10_000
	// departedLimit bounds the objects that are known to be gone.
	departedLimit = 10_000
)

// Event is what a watch tells of one object.
type Event struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation v1alpha1.Operation
	Resource  schema.GroupVersionResource
	// Object is the object after the change, or its last state if it is gone. It is read, never changed.
	Object *unstructured.Unstructured
	// Content returns the keyed hash of the object's canonical form, as Fact.Content has it; empty if there is none. It is
	// called at most once for an event, and only if there are facts to compare it with. Nil stands for none.
	Content func() string
}

// Config is what a Joiner works with.
type Config struct {
	// MaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts about it.
	MaxWait time.Duration
	// Controller is whose changes these are, in metrics.
	Controller string
	// Facts are what Start follows; nil: there are none. They are told when no event needs the lasting facts of an object
	// any more.
	Facts Facts
	// Wanted says whether anybody follows an object, or a collection, which has no name. Facts about others are not kept.
	// Nil stands for all. It does not block.
	Wanted func(Object) bool
}

// SourceState is how one source of facts is. Times are by the clock of this process.
type SourceState struct {
	// Signal is what the source sends.
	Signal Signal
	// LastFact is when the last fact arrived; zero if none has since the term began or shortly before.
	LastFact time.Time
	// WantedSince is when the first change came that no fact of this source has followed; zero if there is none.
	WantedSince time.Time
	// Lag is how much later than the change its fact arrives at most, as seen lately; negative if that was never seen.
	Lag time.Duration
	// Silent says that no change waits for this source: it has sent nothing, or nothing lately although there were changes.
	Silent bool
}

// Joiner brings facts and events together. There is one for each leader's term of each controller: what one has found out
// with a fact does not keep another from it. It may be used concurrently.
type Joiner struct {
	config Config
	meters meters
	// slots are taken by events that wait.
	slots chan struct{}
	// wake makes Run look at the rooms again.
	wake chan struct{}

	// mutex guards what follows. Nothing that can block is done under it, nor anything of the caller's called.
	mutex           sync.Mutex
	sources         sources
	arrivals        *arrivals
	memory          *memory
	unreviewed      unreviewed
	recent, lasting *store
	departed        map[types.UID]time.Time
	occupied        map[Object]*room
	due             rooms
}

// NewJoiner returns a Joiner that has heard nothing yet.
func NewJoiner(config Config) *Joiner {
	return &Joiner{
		config: config, meters: newMeters(config.Controller), slots: make(chan struct{}, waitingLimit), wake: make(chan struct{}, 1),
		arrivals: newArrivals(), memory: newMemory(memoryLimit), unreviewed: unreviewed{},
		recent: newStore(factsLimit, factsLifetime), lasting: newStore(factsLimit, lastingLifetime),
		departed: map[types.UID]time.Time{}, occupied: map[Object]*room{},
	}
}

// Add takes facts. Recovered ones were told before, as those from before the term began: they say that a source is alive if
// their requests were made lately, so that who begins a term goes on waiting for it, and nothing about how late it is.
func (j *Joiner) Add(facts []Fact, recovered bool) {
	now := time.Now()
	evicted := 0
	j.mutex.Lock()
	for i := range facts {
		evicted += j.add(&facts[i], now, recovered)
	}
	j.mutex.Unlock()
	Evicted(evicted)
}

func (j *Joiner) add(fact *Fact, now time.Time, recovered bool) (evicted int) {
	object := objectOfFact(fact)
	from := j.sources.of(fact.Signal, object)
	if from == nil {
		return 0
	}
	arrived := now
	if recovered && fact.Begun.Before(now) {
		arrived = fact.Begun
	}
	if now.Sub(arrived) < patience {
		from.heard(arrived)
		j.memory.begin(now)
	}
	deletion := fact.Operation == v1alpha1.OperationDelete
	if j.config.Wanted != nil && !j.config.Wanted(object) && (object.GroupResource != namespaces || !deletion) {
		return 0
	}
	keep := j.recent
	if fact.Lasting && deletion {
		keep = j.lasting
	}
	if keep.has(fact) {
		return 0
	}
	if lag, ok := j.arrivals.lag(fact, now); ok && !recovered && !deletion {
		from.measure(lag, now, now)
	}
	evicted = keep.add(kept{Fact: *fact, arrived: arrived, recovered: recovered})
	j.stir(object, now)
	return evicted
}

// Listed says that a watch starts, or starts again: changes that happened before it may not have been seen as events. An
// empty namespace stands for all.
func (j *Joiner) Listed(resource schema.GroupVersionResource, namespace string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.memory.listed(scope{resource.GroupResource(), namespace}, time.Now())
}

// Observe takes note of an event, whether or not anybody asks for its author. It is called for the events of a watch in
// their order, and before Submit. An event may be observed more than once.
func (j *Joiner) Observe(event Event) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.observe(&event)
}

func (j *Joiner) observe(event *Event) {
	if !j.sources.heard() {
		return
	}
	uid, now := event.Object.GetUID(), time.Now()
	j.memory.observe(uid, event.Object.GetResourceVersion(), now)
	if event.Operation == v1alpha1.OperationDelete && len(j.departed) < departedLimit {
		j.departed[uid] = now
	}
}

// sweep gives up what is past its time, and returns the objects whose lasting facts nobody needs any more.
func (j *Joiner) sweep(now time.Time) (gone []types.UID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.recent.expire(now)
	j.lasting.expire(now)
	j.unreviewed.expire(now)
	j.meters.lag[Audit].Set(j.sources.audit.lag.Seconds())
	j.meters.lag[Admission].Set(j.sources.admission.lag.Seconds())
	for uid, at := range j.departed {
		if now.Sub(at) <= factsLifetime {
			continue
		}
		delete(j.departed, uid)
		if j.lasting.forget(uid) {
			gone = append(gone, uid)
		}
	}
	return gone
}

// Find returns the author of a state that was found by comparison, without waiting: who made the object's
// resourceVersion, unless others have written the object lately, whose changes may be found as well; or who deleted an
// object that is gone, of which namespace and name suffice. Only the audit knows. What an event has told of before is not
// what a comparison finds: the difference was made by what the caller wants of the object now, and that was nobody of
// the audit's.
func (j *Joiner) Find(event Event) Author {
	object := objectOf(event.Resource.GroupResource(), event.Object)
	var found *kept
	if event.Operation == v1alpha1.OperationDelete {
		found = asker(latestDeletion(j.auditedDeletions(object, event.Object.GetUID())))
	} else {
		found = j.findWriter(object, event.Object)
	}
	if found == nil || j.toldBefore(event.Operation, object, found) {
		return Author{Signal: Unknown}
	}
	return Author{Actor: found.Actor, Signal: Audit}
}

// findWriter returns the fact of who made the state of an object, nil if others have written it lately.
func (j *Joiner) findWriter(of Object, object *unstructured.Unstructured) *kept {
	found := maker(j.auditedStates(object), nil, object)
	if found == nil {
		found = writerOf(of, j.factsOf(object.GetUID()), object)
	}
	if found == nil || j.othersWrote(found) {
		return nil
	}
	return found
}

// auditedDeletions are those of one object, of whatever uid if none is given.
func (j *Joiner) auditedDeletions(object Object, uid types.UID) []*kept {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return where(append(slices.Clone(j.recent.ofName[object]), j.lasting.ofName[object]...), func(k *kept) bool {
		return k.Signal == Audit && k.Operation == v1alpha1.OperationDelete && (uid == "" || k.UID == "" || k.UID == uid) &&
			(k.Lasting || now.Sub(k.arrived) <= factsLifetime)
	})
}

// auditedStates are the facts about the state of an object. Much later requests that found it and changed nothing report
// it like the one that made it, whose fact may have expired: so the object has to say that it was written at that time.
func (j *Joiner) auditedStates(object *unstructured.Unstructured) []*kept {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return where(j.recent.made[revision{object.GetUID(), object.GetResourceVersion()}], func(k *kept) bool {
		return bearsOut(object, k)
	})
}

// othersWrote says whether the audit tells of other states of the object of a fact, which other users have made.
func (j *Joiner) othersWrote(found *kept) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.ContainsFunc(j.recent.ofUID[found.UID], func(k *kept) bool {
		return k.Signal == Audit && !isDeletion(k) && k.After != found.After && !sameUser(k, found)
	})
}

// toldBefore says whether the change that a fact is about has come as an event, which waits no longer.
func (j *Joiner) toldBefore(operation v1alpha1.Operation, object Object, found *kept) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.occupied[object] != nil {
		return false
	}
	if operation == v1alpha1.OperationDelete {
		_, told := j.departed[found.UID]
		return told
	}
	seen, ok := j.memory.of(found.UID)
	return ok && !newer(found.After, seen.last)
}

// Sources tells how the API servers' audit and their admission are as sources of facts.
func (j *Joiner) Sources() []SourceState {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return []SourceState{j.sources.audit.state(Audit, now), j.sources.admission.state(Admission, now)}
}
