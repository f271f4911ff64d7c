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

// routeKinds are the kinds that route to Services.
var routeKinds = sets.New(ingresses.Kind, grpcRoutes.Kind, httpRoutes.Kind)

// refresh makes the objects of the index desired, and no others.
func (d *draft) refresh() error {
	named := d.selectedNames()
	for _, record := range d.in.Index {
		key := recordKey(&record)
		if !named.Has(key.String()) {
			continue
		}
		object, ok := d.source[key]
		if !ok {
			d.missing.Insert(key)
			d.addFromBase(key)
			d.failMissing(key, record.Optional)
			continue
		}
		if _, err := d.add(object, "the environment's workloads need it"); err != nil {
			return err
		}
	}
	return nil
}

// selectedNames returns the objects that the selected workloads reach through the index: what they reference, what that
// references, and what the Ingresses, routes and Gateways to them reference.
func (d *draft) selectedNames() sets.Set[string] {
	named := sets.New[string]()
	for _, workload := range d.in.Only {
		named.Insert(string(workload.Kind) + " " + workload.Name)
	}
	if len(d.in.Only) == 0 {
		for _, record := range d.in.Index {
			named.Insert(recordKey(&record).String())
		}
		return named
	}
	for before := -1; before != named.Len(); {
		before = named.Len()
		for _, record := range d.in.Index {
			d.addReachable(named, &record)
		}
	}
	return named
}

// addReachable adds the dependency of a record if a name in names references it, and the routes to it if it is a Service in
// names.
func (d *draft) addReachable(named sets.Set[string], record *v1alpha1.EnvironmentDependencyRecord) {
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
		if routeKinds.Has(referrer.Kind) {
			named.Insert(referrer.Kind + " " + referrer.Name)
			named.Insert(d.gatewaysOf(referrer)...)
		}
	}
}

// gatewaysOf returns the Gateways that a route of the source attaches to.
func (d *draft) gatewaysOf(referrer v1alpha1.DependencyReference) []string {
	route := d.source[Key{schema.GroupKind{Group: gatewayv1.GroupName, Kind: referrer.Kind}, referrer.Name}]
	if route == nil {
		return nil
	}
	parents, err := references.Gateways(route)
	if err != nil {
		return nil // The next full sync reports the error.
	}
	var names []string
	for _, parent := range parents {
		names = append(names, gateways.Kind+" "+parent.Gateway)
	}
	return names
}

// refreshedRecords returns the index after the action Cluster, which does not change referrers.
func (d *draft) refreshedRecords() ([]v1alpha1.EnvironmentDependencyRecord, error) {
	named := d.selectedNames()
	out := slices.Clone(d.in.Index)
	for i, record := range out {
		if !named.Has(recordKey(&record).String()) {
			continue
		}
		described, err := d.describe(record, record)
		if err != nil {
			return nil, err
		}
		described.LastDiscoveredAt = d.in.Now.DeepCopy()
		out[i] = described
	}
	return out, nil
}

// addFromBase restores a needed object from its base if neither the source nor the target has it. Otherwise it returns nil,
// and the target's object stays as it is.
func (d *draft) addFromBase(key Key) *desiredObject {
	base := d.in.Base[key]
	if base == nil || d.in.hasSnapshot() || d.live[key] != nil && d.desired[key] == nil {
		return nil
	}
	if d.desired[key] == nil {
		as, why := d.copies.setLabels(base.DeepCopy()), "the source does not have it"
		if d.in.Denied.Has(key.GroupKind) {
			why = "it is not read in the source"
		}
		d.desired[key], d.reasons[key] = &desiredObject{object: as, unpatched: as}, why+", and it is made again as it was"
	}
	return d.desired[key]
}
