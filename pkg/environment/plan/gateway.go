// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// The kinds of the Gateway API that are copied.
var (
	gateways        = schema.GroupKind{Group: gatewayv1.GroupName, Kind: "Gateway"}
	grpcRoutes      = schema.GroupKind{Group: gatewayv1.GroupName, Kind: "GRPCRoute"}
	httpRoutes      = schema.GroupKind{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}
	referenceGrants = schema.GroupKind{Group: gatewayv1.GroupName, Kind: "ReferenceGrant"}
)

// GatewayAPIKinds returns the kinds of the Gateway API that are copied. They are custom resources: a cluster may not have
// them, and the ClusterRoles admin and edit grant no permissions on them.
func GatewayAPIKinds() []schema.GroupKind {
	return []schema.GroupKind{gateways, grpcRoutes, httpRoutes, referenceGrants}
}

// IsGatewayAPI reports whether a kind is one of GatewayAPIKinds.
func IsGatewayAPI(kind schema.GroupKind) bool {
	return kind.Group == gatewayv1.GroupName && isWritten(kind)
}

// IsCustomResource reports whether a copied kind is defined by a CustomResourceDefinition, so that a cluster may not have
// it.
func IsCustomResource(kind schema.GroupKind) bool { return IsOnlyIncluded(kind) || IsGatewayAPI(kind) }

// addGatewayAPI makes desired the HTTPRoutes and GRPCRoutes to Services, the Gateway listeners of the same namespace that
// they attach to, what these reference, and the ReferenceGrants for all of it.
func (r *routeCollector) addGatewayAPI(services sets.Set[string]) error {
	if !r.in.hasSnapshot() && !r.in.Environment.Spec.Adapt.IngressHosts.Copied() {
		return nil
	}
	attached := map[string][]references.Parent{}
	for _, kind := range []schema.GroupKind{httpRoutes, grpcRoutes} {
		routes, err := r.addRoutesTo(kind, services)
		if err != nil {
			return err
		}
		for _, route := range routes {
			parents, err := references.Gateways(route.unpatched)
			if err != nil {
				return err
			}
			for _, parent := range parents {
				attached[parent.Gateway] = append(attached[parent.Gateway], parent)
			}
		}
	}
	for _, gateway := range r.objects.originalsOf(gateways) {
		if err := r.addGateway(gateway, attached[gateway.GetName()]); err != nil {
			return err
		}
	}
	return r.addReferenceGrants()
}

// addGateway makes a Gateway desired with the listeners that routes attach to. Other listeners may have certificates of
// other applications.
func (r *routeCollector) addGateway(gateway *unstructured.Unstructured, parents []references.Parent) error {
	if len(parents) == 0 || r.in.isShared(gateway) {
		return nil
	}
	attached := gateway
	if !r.in.hasSnapshot() {
		var err error
		attached, err = withEntries(gateway, "listeners", func(listener map[string]any) []any {
			if slices.ContainsFunc(parents, func(parent references.Parent) bool { return attachesTo(parent, listener) }) {
				return []any{listener}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	w, err := r.collector.add(attached, "routes that are copied attach to it")
	if w == nil || err != nil {
		return err
	}
	return r.collector.addReferencesOf(w)
}

// attachesTo reports whether a route attaches to a listener.
func attachesTo(parent references.Parent, listener map[string]any) bool {
	return (parent.Listener == "" || parent.Listener == listener["name"]) && (parent.Port == 0 || parent.Port == listener["port"])
}

// maxGrantEntries is the largest number of entries that the CustomResourceDefinition allows in a ReferenceGrant.
const maxGrantEntries = 16

// addReferenceGrants makes ReferenceGrants desired, limited to copied objects. A grant for all objects of a kind is
// replaced by entries for the copied ones, because the target may have others.
func (r *routeCollector) addReferenceGrants() error {
	for _, grant := range r.objects.originalsOf(referenceGrants) {
		if r.in.isShared(grant) {
			continue
		}
		narrowed, err := withEntries(grant, "to", r.grantEntries)
		if err != nil {
			return err
		}
		if r.in.hasSnapshot() {
			narrowed = grant
		}
		switch to, _, _ := unstructured.NestedSlice(narrowed.Object, "spec", "to"); {
		case len(to) > maxGrantEntries:
			r.report.warn(fmt.Sprintf("%s is not copied: it would name %d objects, and can name %d", KeyOf(grant), len(to), maxGrantEntries))
		case len(to) > 0:
			if _, err := r.collector.add(narrowed, "it lets others refer to what is copied"); err != nil {
				return err
			}
		}
	}
	return nil
}

// grantEntries returns the entries for copied objects that replace an entry of a ReferenceGrant of the source.
func (r *routeCollector) grantEntries(entry map[string]any) []any {
	group, _ := entry["group"].(string)
	kind, _ := entry["kind"].(string)
	if name, isNamed := entry["name"].(string); isNamed {
		if r.selection.desired[Key{schema.GroupKind{Group: group, Kind: kind}, name}] != nil {
			return []any{entry}
		}
		return nil
	}
	names := sets.New[string]()
	for key := range r.selection.desired {
		if key.Group == group && key.Kind == kind {
			names.Insert(key.Name)
		}
	}
	var entries []any
	for _, name := range sets.List(names) {
		entries = append(entries, map[string]any{"group": group, "kind": kind, "name": name})
	}
	return entries
}

// withEntries returns a copy of an object in which each entry of a list in spec is replaced by the result of replace. It
// fails if the object does not match the schema of its type.
func withEntries(
	object *unstructured.Unstructured, list string, replace func(entry map[string]any) []any,
) (*unstructured.Unstructured, error) {
	entries, _, err := unstructured.NestedSlice(object.Object, "spec", list)
	if err != nil {
		return nil, fmt.Errorf("read the %s of %s: it is not of the shape of its type", list, KeyOf(object))
	}
	kept := []any{}
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			kept = append(kept, replace(fields)...)
		}
	}
	out := object.DeepCopy()
	if err := unstructured.SetNestedSlice(out.Object, kept, "spec", list); err != nil {
		return nil, fmt.Errorf("read the %s of %s: it is not of the shape of its type", list, KeyOf(object))
	}
	return out, nil
}
