// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/factlog"
)

// recoveryPatience is how long a start waits for the facts that are there already. Without them
// the changes that were made meanwhile have no author, which is better than not being mirrored.
const recoveryPatience = 10 * time.Second

// namespacesResource is followed whatever the rules select: who deletes a namespace deletes what
// is in it.
var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// Facts are the reports of who made changes.
type Facts interface {
	// Follow tells of facts until ctx ends: in a first call of all that are there, then of those
	// that come.
	Follow(ctx context.Context, told func(facts []attribution.Fact, recovered bool))
	// Forget says that objects are gone, and with them the need for their lasting facts.
	Forget(uids ...types.UID)
}

var _ Facts = &factlog.Log{}

// authors finds out who made the changes that the watches tell of, and those that comparisons
// find.
type authors struct {
	// facts is nil when nobody reports.
	facts Facts
	// hash is that of the content in facts; nil when facts have none.
	hash   func([]byte) string
	joiner *attribution.Joiner
	// maxWait is the longest that a change waits for facts.
	maxWait time.Duration
	// auditExpected says that API servers are set up to report what they audit.
	auditExpected bool
	// wanted are the types that are mirrored; nil until that is known.
	wanted atomic.Pointer[sets.Set[schema.GroupResource]]
}

func newAuthors(c Config) *authors {
	a := &authors{facts: c.Facts, hash: c.Hash, maxWait: c.AttributionMaxWait, auditExpected: c.AuditExpected}
	config := attribution.Config{MaxWait: c.AttributionMaxWait, Wanted: a.follows}
	if c.Facts != nil {
		config.Gone = func(uid types.UID) { c.Facts.Forget(uid) }
	}
	a.joiner = attribution.NewJoiner(config)
	return a
}

// start follows the facts until ctx ends. It returns when those are known that are there already.
func (a *authors) start(ctx context.Context, group *wait.Group) {
	group.StartWithContext(ctx, a.joiner.Run)
	if a.facts == nil {
		return
	}
	recovered := make(chan struct{})
	done := sync.OnceFunc(func() { close(recovered) })
	group.StartWithContext(ctx, func(ctx context.Context) {
		a.facts.Follow(ctx, func(facts []attribution.Fact, recovered bool) {
			a.joiner.Add(facts, recovered)
			done()
		})
	})
	select {
	case <-recovered:
	case <-time.After(recoveryPatience):
		klog.FromContext(ctx).Info("Starting without the reports of who made changes, which cannot be read")
	case <-ctx.Done():
	}
}

// follow takes note of the types that are mirrored.
func (a *authors) follow(routes map[schema.GroupVersionResource][]*destination) {
	wanted := sets.New(namespacesResource)
	for t := range routes {
		wanted.Insert(t.GroupResource())
	}
	a.wanted.Store(&wanted)
}

// follows says whether facts about a type are needed.
func (a *authors) follows(t schema.GroupResource) bool {
	wanted := a.wanted.Load()
	return wanted == nil || wanted.Has(t)
}

// content returns the hash of an object's canonical form as facts have it, when it is asked for.
func (a *authors) content(canonical []byte) func() string {
	if a.hash == nil || canonical == nil {
		return nil
	}
	return func() string { return a.hash(canonical) }
}

// waiting says whether a change of the object waits for its author.
func (a *authors) waiting(o Object) bool {
	return a.joiner.Waiting(attribution.Object{GroupResource: o.resource().GroupResource(), Namespace: o.Namespace, Name: o.Name})
}

// countAuthor adds a change by the signal that told who made it.
func countAuthor(counts *v1alpha1.AttributionCounts, author attribution.Author) {
	switch author.Signal {
	case attribution.Audit:
		counts.Audit++
	case attribution.Admission:
		counts.Admission++
	case attribution.ManagedFields:
		counts.ManagedFields++
	default:
		counts.Unknown++
	}
}

func sumOf(a, b v1alpha1.AttributionCounts) v1alpha1.AttributionCounts {
	return v1alpha1.AttributionCounts{
		Audit: a.Audit + b.Audit, Admission: a.Admission + b.Admission,
		ManagedFields: a.ManagedFields + b.ManagedFields, Unknown: a.Unknown + b.Unknown,
	}
}
