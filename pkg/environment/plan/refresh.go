// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// leading are the kinds that lead to Services.
var leading = sets.New(ingresses.Kind, grpcRoutes.Kind, httpRoutes.Kind)

// refresh takes in what the index names, and nothing else.
func (d *draft) refresh() error {
	named := d.named()
	for _, record := range d.Index {
		key := recordKey(&record)
		if !named.Has(key.String()) {
			continue
		}
		object, ok := d.source[key]
		if !ok {
			d.absent.Insert(key)
			d.rebuild(key)
			d.missing(key, record.Optional)
			continue
		}
		if _, err := d.want(object, "the environment's workloads need it"); err != nil {
			return err
		}
	}
	return nil
}

// named returns what the index names because of the workloads that are to be synced: what they refer to, what that refers to, and
// what the Ingresses, routes and Gateways do that lead to them.
func (d *draft) named() sets.Set[string] {
	named := sets.New[string]()
	for _, workload := range d.Only {
		named.Insert(string(workload.Kind) + " " + workload.Name)
	}
	if len(d.Only) == 0 {
		for _, record := range d.Index {
			named.Insert(recordKey(&record).String())
		}
		return named
	}
	for before := -1; before != named.Len(); {
		before = named.Len()
		for _, record := range d.Index {
			d.reach(named, &record)
		}
	}
	return named
}

// reach adds what a record is about, if one of the named refers to it, and what leads to a Service that is named.
func (d *draft) reach(named sets.Set[string], record *v1alpha1.EnvironmentDependencyRecord) {
	of := recordKey(record).String()
	for _, referrer := range record.ReferredBy {
		if named.Has(referrer.Kind + " " + referrer.Name) {
			named.Insert(of)
		}
	}
	if record.Type != v1alpha1.DependencyService || !named.Has(of) {
		return
	}
	for _, referrer := range record.ReferredBy {
		if leading.Has(referrer.Kind) {
			named.Insert(referrer.Kind + " " + referrer.Name)
			named.Insert(d.gatewaysOf(referrer)...)
		}
	}
}

// gatewaysOf names the Gateways that a route attaches to in the source.
func (d *draft) gatewaysOf(referrer v1alpha1.DependencyReference) []string {
	route := d.source[Key{schema.GroupKind{Group: gatewayv1.GroupName, Kind: referrer.Kind}, referrer.Name}]
	if route == nil {
		return nil
	}
	parents, err := references.Gateways(route)
	if err != nil {
		return nil // The next sync of everything says so.
	}
	var names []string
	for _, parent := range parents {
		names = append(names, gateways.Kind+" "+parent.Gateway)
	}
	return names
}

// refreshed are the records of a plan that only refreshes: who refers to what stays as it is.
func (d *draft) refreshed() ([]v1alpha1.EnvironmentDependencyRecord, error) {
	named := d.named()
	out := slices.Clone(d.Index)
	for i, record := range out {
		if !named.Has(recordKey(&record).String()) {
			continue
		}
		described, err := d.described(record, record)
		if err != nil {
			return nil, err
		}
		described.LastDiscoveredAt = d.Now.DeepCopy()
		out[i] = described
	}
	return out, nil
}
