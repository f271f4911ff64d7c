// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Event is a watch event of one object.
type Event struct {
	// Operation is CREATE, UPDATE or DELETE.
	Operation v1alpha1.Operation
	Resource  schema.GroupVersionResource
	// Object is the object after the change, or its last state if it was deleted. It is never modified.
	Object *unstructured.Unstructured
	// Content returns the keyed hash of the object's canonical form, as in Fact.Content; empty if there is none. It is
	// called at most once for an event, and only if there are facts to compare with. Nil means no content.
	Content func() string
}

// Config configures a Joiner.
type Config struct {
	// MaxWait (--attribution-max-wait, 2 s) is the longest time that a change waits for facts about it.
	MaxWait time.Duration
	// Controller is the name of the controller in metrics.
	Controller string
	// Facts is the source of facts that Start follows; nil for none. It is notified when no event needs the lasting facts
	// of an object any more.
	Facts Facts
	// Wanted reports whether an object, or a collection, which has no name, is of interest. Facts about others are not
	// stored. Nil means all. It must neither block nor call the Joiner.
	Wanted func(Object) bool
}

// wants reports whether facts about an object are stored: about wanted ones, and about deletions of namespaces, which
// explain the deletions of their objects.
func (c Config) wants(fact *Fact, object Object) bool {
	return c.Wanted == nil || c.Wanted(object) || object.GroupResource == namespaces && fact.Operation == v1alpha1.OperationDelete
}

// SourceState is the state of one source of facts. Times are by the clock of this process.
type SourceState struct {
	// Signal is the signal of the source.
	Signal Signal
	// LastFact is when the last fact arrived; zero if none has since the term began or shortly before.
	LastFact time.Time
	// WantedSince is when the first change arrived that no fact of this source has followed; zero if there is none.
	WantedSince time.Time
	// Lag is the maximum time between a change and the arrival of its fact, as measured recently; negative if unknown.
	Lag time.Duration
}

// Joiner matches facts with events. There is one for each leader term of each controller: a fact that explains an event
// to one controller explains it to the others, too. It is safe for concurrent use.
type Joiner struct {
	config Config
	meters meters

	// mutex guards the fields below. No blocking operation and no callback but Config.Wanted runs under it.
	mutex    sync.Mutex
	facts    *factIndex
	expected *expectations
	observed *observations
	queues   *eventQueues
}

// NewJoiner returns a Joiner without facts.
func NewJoiner(config Config) *Joiner {
	return &Joiner{
		config: config, meters: newMeters(config.Controller),
		facts: newFactIndex(), expected: newExpectations(config.MaxWait), observed: newObservations(), queues: newEventQueues(),
	}
}

// Add adds facts. Recovered facts were stored before, as those from before the term began. They show that a source is
// active if their requests are recent, so that the new leader keeps waiting for it, but are not used to measure its lag.
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
	from := j.expected.sources.of(fact.Signal, object)
	if from == nil {
		return 0
	}
	arrived := now
	if recovered && fact.Begun.Before(now) {
		arrived = fact.Begun
	}
	if now.Sub(arrived) < silenceTimeout {
		from.received(arrived, fact.Ended)
		j.observed.versions.begin(now)
	}
	if !j.config.wants(fact, object) || j.facts.has(fact) {
		return 0
	}
	j.expected.factArrived(fact, from, now, recovered)
	evicted = j.facts.add(storedFact{Fact: *fact, arrived: arrived, recovered: recovered})
	j.queues.notify(object, now)
	return evicted
}

// Listed records that a watch starts or restarts: changes before it may not have been observed as events. An empty
// namespace means all.
func (j *Joiner) Listed(resource schema.GroupVersionResource, namespace string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.observed.versions.listed(scope{resource.GroupResource(), namespace}, time.Now())
}

// Observe records an event, whether or not its author is needed. It must be called for the events of a watch in their
// order, and before Submit. An event may be observed more than once.
func (j *Joiner) Observe(event Event) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.expected.active() {
		j.observed.record(&event, time.Now())
	}
}

// sweep removes expired facts, and returns the objects whose lasting facts are no longer needed.
func (j *Joiner) sweep(now time.Time) (gone []types.UID) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.facts.expire(now)
	j.expected.unreviewed.expire(unreviewedLifetime, now)
	j.expected.unreported.expire(unreportedLifetime, now)
	j.meters.setLag(&j.expected.sources)
	for _, uid := range j.observed.expire(now) {
		if j.facts.forget(uid) {
			gone = append(gone, uid)
		}
	}
	return gone
}

// Sources returns the state of the API servers' audit and admission as sources of facts.
func (j *Joiner) Sources() []SourceState {
	now := time.Now()
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.expected.sources.states(now)
}
