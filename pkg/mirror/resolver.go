// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Resolver resolves rules in the same way as the mirror.
type Resolver struct {
	Types  *watch.Types
	Policy watch.Policy
}

// resolverOf is a Resolver of one snapshot.
type resolverOf struct {
	*Resolver
	snapshot *watch.Snapshot
}

var (
	_ access.Resolver = &Resolver{}
	_ access.Resolver = resolverOf{}
)

// Of returns a resolver with the types of one snapshot, nil if they are unknown, instead of those of the last discovery.
func (r *Resolver) Of(snapshot *watch.Snapshot) access.Resolver { return resolverOf{r, snapshot} }

// Preset returns the resources of a rule that names none.
func (r *Resolver) Preset() []schema.GroupResource { return r.Policy.Default }

// Resolve resolves a selection with the discovered types. A resource of a group whose discovery failed is not reported as unmatched.
func (r *Resolver) Resolve(selection access.Selection) (resources []schema.GroupResource, unmatched []string, known bool) {
	return r.Of(r.Types.Snapshot()).Resolve(selection)
}

// Resolve is that of Resolver.
func (r resolverOf) Resolve(selection access.Selection) (resources []schema.GroupResource, unmatched []string, known bool) {
	if r.snapshot == nil {
		return nil, nil, false
	}
	types, misses := r.snapshot.Resolve(watch.Selection{
		APIGroups:   selection.APIGroups,
		APIVersions: selection.APIVersions,
		Resources:   selection.Resources,
		Scope:       watch.Scope(selection.Scope),
	}, r.Policy)
	for _, t := range types {
		resources = append(resources, t.Resource.GroupResource())
	}
	for _, miss := range misses {
		if !miss.Uncertain {
			unmatched = append(unmatched, miss.String())
		}
	}
	return resources, unmatched, true
}
