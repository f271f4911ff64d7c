// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// routeKinds are the kinds that route to Services.
var routeKinds = sets.New(ingresses.Kind, grpcRoutes.Kind, httpRoutes.Kind)

// refresh makes the objects of the index desired, and no others.
func refresh(in *Input, c *collector) error {
	named := selectedNames(in, c.objects.source)
	for _, record := range in.Index {
		key := recordKey(&record)
		if !named.Has(key.String()) {
			continue
		}
		object, ok := c.objects.source[key]
		if !ok {
			c.selection.missing.Insert(key)
			c.addFromBase(key)
			c.report.failMissing(key, record.Optional)
			continue
		}
		if _, err := c.add(object, "the environment's workloads need it"); err != nil {
			return err
		}
	}
	return nil
}

// selectedNames returns the objects that the selected workloads reach through the index: what they reference, what that
// references, and what the Ingresses, routes and Gateways to them reference.
func selectedNames(in *Input, source map[Key]*unstructured.Unstructured) sets.Set[string] {
	named := sets.New[string]()
	for _, workload := range in.Only {
		named.Insert(string(workload.Kind) + " " + workload.Name)
	}
	if len(in.Only) == 0 {
		for _, record := range in.Index {
			named.Insert(recordKey(&record).String())
		}
		return named
	}
	for before := -1; before != named.Len(); {
		before = named.Len()
		for _, record := range in.Index {
			addReachable(named, &record, source)
		}
	}
	return named
}

// addReachable adds the dependency of a record if an object in named references it, and the routes to it if it is a Service
// in named.
func addReachable(
	named sets.Set[string], record *v1alpha1.EnvironmentDependencyRecord, source map[Key]*unstructured.Unstructured,
) {
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
			named.Insert(gatewaysOf(referrer, source)...)
		}
	}
}

// gatewaysOf returns the Gateways that a route of the source attaches to.
func gatewaysOf(referrer v1alpha1.DependencyReference, source map[Key]*unstructured.Unstructured) []string {
	route := source[Key{schema.GroupKind{Group: gatewayv1.GroupName, Kind: referrer.Kind}, referrer.Name}]
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
func (b *indexBuilder) refreshedRecords() ([]v1alpha1.EnvironmentDependencyRecord, error) {
	named := selectedNames(b.in, b.source)
	out := slices.Clone(b.in.Index)
	for i, record := range out {
		if !named.Has(recordKey(&record).String()) {
			continue
		}
		described, err := b.describe(record, record)
		if err != nil {
			return nil, err
		}
		described.LastDiscoveredAt = b.in.Now.DeepCopy()
		out[i] = described
	}
	return out, nil
}
