// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
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

// GatewayAPIKinds are the kinds of the Gateway API that are copied. They are custom resources, which a cluster may not have, and on which
// the ClusterRoles admin and edit give no rights.
func GatewayAPIKinds() []schema.GroupKind {
	return []schema.GroupKind{gateways, grpcRoutes, httpRoutes, referenceGrants}
}

// IsGatewayAPI says whether a kind is one of GatewayAPIKinds.
func IsGatewayAPI(kind schema.GroupKind) bool {
	return kind.Group == gatewayv1.GroupName && isWritten(kind)
}

// IsCustomResource says whether a kind that is copied is defined by a CustomResourceDefinition, so that a cluster may not have it.
func IsCustomResource(kind schema.GroupKind) bool { return IsOnlyIncluded(kind) || IsGatewayAPI(kind) }

// gatewayAPI takes in the HTTPRoutes and GRPCRoutes that lead to Services, the listeners of Gateways of the same namespace that they
// attach to, with what these refer to, and what ReferenceGrants let others refer to of all that is copied.
func (d *draft) gatewayAPI(services sets.Set[string]) error {
	if !d.isAsApplied() && !d.Environment.Spec.Adapt.IngressHosts.Copied() {
		return nil
	}
	attached := map[string][]references.Parent{}
	for _, kind := range []schema.GroupKind{httpRoutes, grpcRoutes} {
		routes, err := d.leadingTo(kind, services)
		if err != nil {
			return err
		}
		for _, route := range routes {
			parents, err := references.Gateways(route.undeclared)
			if err != nil {
				return err
			}
			for _, parent := range parents {
				attached[parent.Gateway] = append(attached[parent.Gateway], parent)
			}
		}
	}
	for _, gateway := range d.originals(gateways) {
		if err := d.wantGateway(gateway, attached[gateway.GetName()]); err != nil {
			return err
		}
	}
	return d.permitting()
}

// wantGateway takes in a Gateway with the listeners that routes attach to. The others may have certificates of other applications.
func (d *draft) wantGateway(gateway *unstructured.Unstructured, parents []references.Parent) error {
	if len(parents) == 0 || d.isShared(gateway) {
		return nil
	}
	attached := gateway
	if !d.isAsApplied() {
		var err error
		attached, err = filtered(gateway, "listeners", func(listener map[string]any) []any {
			if slices.ContainsFunc(parents, func(parent references.Parent) bool { return selects(parent, listener) }) {
				return []any{listener}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	w, err := d.want(attached, "routes that are copied attach to it")
	if w == nil || err != nil {
		return err
	}
	return d.takeFor(w)
}

// isShared says whether an object that is there may be about other workloads than those that are to be synced: then it stays as it is.
func (d *draft) isShared(object *unstructured.Unstructured) bool {
	return len(d.Only) > 0 && d.Base[KeyOf(object)] != nil
}

// selects says whether a route attaches to a listener.
func selects(parent references.Parent, listener map[string]any) bool {
	return (parent.Listener == "" || parent.Listener == listener["name"]) && (parent.Port == 0 || parent.Port == listener["port"])
}

// takeFor takes in what an object refers to.
func (d *draft) takeFor(w *wanted) error {
	refs, err := references.Of(w.desired)
	return errors.Join(err, d.require(w.undeclared), d.take(refs))
}

// maxPermitted is how many objects a ReferenceGrant can name, as the definition of the kind has it.
const maxPermitted = 16

// permitting takes in the ReferenceGrants about what is copied, as far as they are. One about all objects of a kind names those that are
// copied: the target may have others.
func (d *draft) permitting() error {
	for _, grant := range d.originals(referenceGrants) {
		if d.isShared(grant) {
			continue
		}
		narrowed, err := filtered(grant, "to", d.permitted)
		if err != nil {
			return err
		}
		if d.isAsApplied() {
			narrowed = grant
		}
		switch to, _, _ := unstructured.NestedSlice(narrowed.Object, "spec", "to"); {
		case len(to) > maxPermitted:
			d.report(fmt.Sprintf("%s is not copied: it would name %d objects, and can name %d", KeyOf(grant), len(to), maxPermitted))
		case len(to) > 0:
			if _, err := d.want(narrowed, "it lets others refer to what is copied"); err != nil {
				return err
			}
		}
	}
	return nil
}

// permitted are the entries of a ReferenceGrant for what is copied of what one of the source is about.
func (d *draft) permitted(entry map[string]any) []any {
	group, _ := entry["group"].(string)
	kind, _ := entry["kind"].(string)
	if name, isNamed := entry["name"].(string); isNamed {
		if d.wanted[Key{schema.GroupKind{Group: group, Kind: kind}, name}] != nil {
			return []any{entry}
		}
		return nil
	}
	names := sets.New[string]()
	for key := range d.wanted {
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

// filtered returns a copy of an object with others in the place of the entries of a list of its spec. It fails on an object that is not of
// the shape of its type.
func filtered(object *unstructured.Unstructured, list string, others func(entry map[string]any) []any) (*unstructured.Unstructured, error) {
	entries, _, err := unstructured.NestedSlice(object.Object, "spec", list)
	if err != nil {
		return nil, fmt.Errorf("read the %s of %s: it is not of the shape of its type", list, KeyOf(object))
	}
	kept := []any{}
	for _, entry := range entries {
		if fields, ok := entry.(map[string]any); ok {
			kept = append(kept, others(fields)...)
		}
	}
	of := object.DeepCopy()
	if err := unstructured.SetNestedSlice(of.Object, kept, "spec", list); err != nil {
		return nil, fmt.Errorf("read the %s of %s: it is not of the shape of its type", list, KeyOf(object))
	}
	return of, nil
}
