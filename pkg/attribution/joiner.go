// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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
	// Wanted says whether anybody follows a type. Facts about others are not kept. Nil stands for all types.
	Wanted func(schema.GroupResource) bool
	// Gone is called when no event needs the lasting facts of an object any more. Nil: nobody needs to know.
	Gone func(types.UID)
}

// SourceState is how one source of facts is. Times are by the clock of this process.
type SourceState struct {
	// Signal is what the source sends.
	Signal Signal
	// LastFact is when the last fact arrived; zero if none has since the term began.
	LastFact time.Time
	// WantedSince is when the first change came that no fact of this source has followed; zero if there is none.
	WantedSince time.Time
	// Lag is how much later than the change its fact arrives at most, as seen lately; negative if that was never seen.
	Lag time.Duration
	// Silent says that no change waits for this source: it has sent nothing, or nothing lately although there were changes.
	Silent bool
}

// Joiner brings facts and events together. There is one for each leader's term. It may be used concurrently.
type Joiner struct {
	config Config
}

// NewJoiner returns a Joiner that has heard nothing yet.
func NewJoiner(config Config) *Joiner { return &Joiner{config: config} }

// Run releases what waits, and returns when ctx has ended and its last delivery has returned.
func (j *Joiner) Run(ctx context.Context) { <-ctx.Done() }

// Add takes facts. Recovered ones are from before the term began: they say nothing about whether a source is alive.
func (j *Joiner) Add([]Fact, bool) {}

// Listed says that a watch starts, or starts again: changes that happened before it may not have been seen as events.
func (j *Joiner) Listed(schema.GroupVersionResource, string) {}

// Observe takes note of an event, whether or not anybody asks for its author. An event may be observed more than once.
func (j *Joiner) Observe(Event) {}

// Submit finds the author of an event and calls deliver with it: exactly once, on this or another goroutine, unless ctx
// ends before. Events of one object are delivered in the order in which they were submitted, and no event waits for
// facts about another object. Submit returns an error, which is that of ctx, if it did not accept the event.
func (j *Joiner) Submit(ctx context.Context, event Event, deliver func(context.Context, Author)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deliver(ctx, Author{Signal: Unknown})
	return nil
}

// Waiting says whether an event of the object has been submitted and not been delivered.
func (j *Joiner) Waiting(Object) bool { return false }

// Find returns the author of a state that was found by comparison, without waiting: who made the object's
// resourceVersion, or who deleted an object that is gone, of which namespace and name suffice. Only the audit knows.
func (j *Joiner) Find(Event) Author { return Author{Signal: Unknown} }

// Sources tells how the sources of facts are.
func (j *Joiner) Sources() []SourceState { return nil }
