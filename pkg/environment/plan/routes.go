// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// routeCollector makes desired what routes to the Services of workloads.
type routeCollector struct {
	in        *Input
	objects   *inputObjects
	selection *selection
	report    *report
	collector *collector
}

// add makes desired what routes to the Services of workloads. The workloads are passed without the environment's patches.
func (r *routeCollector) add(unpatched []*unstructured.Unstructured) error {
	services, err := r.unpatchedServices(unpatched)
	if err != nil {
		return err
	}
	if _, err := r.addRoutesTo(ingresses, services); err != nil {
		return err
	}
	return r.addGatewayAPI(services)
}

// unpatchedServices returns the Services that workloads reference without the environment's patches. An Ingress brings its
// certificates along, and a patch must not reach certificates that its author has no permission to read.
func (r *routeCollector) unpatchedServices(unpatched []*unstructured.Unstructured) (sets.Set[string], error) {
	selecting, err := references.Selecting(r.in.originals(), unpatched)
	if err != nil {
		return nil, err
	}
	targets := r.selection.unpatchedRefs.Clone()
	for _, ref := range selecting {
		targets.Insert(ref.Target)
	}
	names := sets.New[string]()
	for target := range targets {
		if target.Type == references.Service && r.selection.desired[keyOf(target)] != nil {
			names.Insert(target.Name)
		}
	}
	return names, nil
}

// addRoutesTo makes the objects of a kind desired that route to one of the Services, with their other references, and
// returns them. Only the unpatched backends count: patches can change them, but cannot add other routes.
func (r *routeCollector) addRoutesTo(kind schema.GroupKind, services sets.Set[string]) ([]*desiredObject, error) {
	var found []*desiredObject
	for _, object := range r.objects.originalsOf(kind) {
		w, omitted, err := r.collector.desiredOf(object)
		if err != nil {
			return nil, err
		}
		of := object
		if w != nil {
			of = w.unpatched
		}
		refs, err := r.collector.copies.referencesOf(of)
		if err != nil {
			return nil, err
		}
		to := slices.IndexFunc(refs, func(ref references.Reference) bool {
			return ref.Type == references.Service && services.Has(ref.Name)
		})
		if to < 0 {
			continue
		}
		if w == nil {
			if r.in.Environment.Spec.Adapt.IngressHosts.Copied() {
				r.report.warn(fmt.Sprintf("%s is not copied: %s", KeyOf(object), omitted))
			}
			continue
		}
		w.reason = "it leads to Service " + refs[to].Name
		r.selection.desired[KeyOf(object)] = w
		found = append(found, w)
		if err := r.collector.addReferencesOf(w); err != nil {
			return nil, err
		}
	}
	return found, nil
}
