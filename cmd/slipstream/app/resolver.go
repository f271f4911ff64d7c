// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/rights"
	"github.com/configbutler/slipstream/pkg/source"
)

// resolver lets admission read rules as the mirror does.
type resolver struct {
	catalogue *source.Catalogue
	policy    source.Policy
}

var _ rights.Resolver = &resolver{}

// Preset is what a rule means that names no resources.
func (r *resolver) Preset() []schema.GroupResource { return r.policy.Default }

// Resolve asks the types that are known of the cluster. What might exist in a group that does not answer is no miss.
func (r *resolver) Resolve(selection rights.Selection) (resources []schema.GroupResource, unmatched []string, known bool) {
	snapshot := r.catalogue.Snapshot()
	if snapshot == nil {
		return nil, nil, false
	}
	types, misses := snapshot.Resolve(source.Selection{
		APIGroups:   selection.APIGroups,
		APIVersions: selection.APIVersions,
		Resources:   selection.Resources,
		Scope:       source.Scope(selection.Scope),
	}, r.policy)
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

// newCatalogue follows the types of the cluster that config leads to, once it is run.
func newCatalogue(config *rest.Config, refresh time.Duration) (*source.Catalogue, error) {
	clients, err := source.NewClients(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for its resource types: %w", err)
	}
	return source.NewCatalogue(clients.Discovery, clients.Metadata, refresh)
}
