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

// namespacesResource is always followed: the user who deletes a namespace deletes the objects in it.
var namespacesResource = schema.GroupResource{Resource: "namespaces"}

// authors finds the authors of the changes that watches and comparisons deliver.
type authors struct {
	// hash returns the HMAC of content that facts contain; nil if they contain none.
	hash   func([]byte) string
	joiner *attribution.Joiner
	// maxWait bounds how long a change waits for facts.
	maxWait time.Duration
	// auditExpected is set if API servers are configured to send audit events.
	auditExpected bool
	// wanted are the mirrored types; nil until the first plan.
	wanted atomic.Pointer[sets.Set[schema.GroupResource]]
}

func newAuthors(c Config) *authors {
	a := &authors{hash: c.Hash, maxWait: c.AttributionMaxWait, auditExpected: c.AuditExpected}
	a.joiner = attribution.NewJoiner(attribution.Config{
		Controller: controllerName, MaxWait: c.AttributionMaxWait, Facts: c.Facts, Wanted: a.follows,
	})
	return a
}

// follow sets the mirrored types.
func (a *authors) follow(routes map[schema.GroupVersionResource][]*destination) {
	wanted := sets.New(namespacesResource)
	for t := range routes {
		wanted.Insert(t.GroupResource())
	}
	a.wanted.Store(&wanted)
}

// follows reports whether facts about an object are needed. Facts about the server's own kinds always are: a rule that selects them may be
// created at the same time as the objects.
func (a *authors) follows(o attribution.Object) bool {
	wanted := a.wanted.Load()
	return wanted == nil || o.Group == v1alpha1.GroupName || wanted.Has(o.GroupResource)
}

// content returns a function that computes the HMAC of an object's canonical form, as facts contain it; nil if they contain none.
func (a *authors) content(canonical []byte) func() string {
	if a.hash == nil || canonical == nil {
		return nil
	}
	return func() string { return a.hash(canonical) }
}

// waiting reports whether a change of the object waits for its author.
func (a *authors) waiting(o outbox.Object) bool {
	return a.joiner.Waiting(attribution.Object{GroupResource: o.GroupVersionResource().GroupResource(), Namespace: o.Namespace, Name: o.Name})
}

// countAuthor counts a change by the signal that its author comes from.
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
