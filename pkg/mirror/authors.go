// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// namespacesResource is followed whatever the rules select: who deletes a namespace deletes what
// is in it.
var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// authors finds out who made the changes that the watches tell of, and those that comparisons
// find.
type authors struct {
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
	a := &authors{hash: c.Hash, maxWait: c.AttributionMaxWait, auditExpected: c.AuditExpected}
	a.joiner = attribution.NewJoiner(attribution.Config{
		Controller: controllerName, MaxWait: c.AttributionMaxWait, Facts: c.Facts, Wanted: a.follows,
	})
	return a
}

// follow takes note of the types that are mirrored.
func (a *authors) follow(routes map[schema.GroupVersionResource][]*destination) {
	wanted := sets.New(namespacesResource)
	for t := range routes {
		wanted.Insert(t.GroupResource())
	}
	a.wanted.Store(&wanted)
}

// follows says whether facts about an object are needed. Those about this server's own kinds always are: a rule that selects
// them may have been created in the same moment, with what it selects.
func (a *authors) follows(o attribution.Object) bool {
	wanted := a.wanted.Load()
	return wanted == nil || o.Group == v1alpha1.GroupName || wanted.Has(o.GroupResource)
}

// content returns the hash of an object's canonical form as facts have it, when it is asked for.
func (a *authors) content(canonical []byte) func() string {
	if a.hash == nil || canonical == nil {
		return nil
	}
	return func() string { return a.hash(canonical) }
}

// waiting says whether a change of the object waits for its author.
func (a *authors) waiting(o outbox.Object) bool {
	return a.joiner.Waiting(attribution.Object{GroupResource: o.GroupVersionResource().GroupResource(), Namespace: o.Namespace, Name: o.Name})
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
