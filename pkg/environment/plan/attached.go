// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// The kinds of attached objects.
var (
	autoscalers = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	budgets     = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	ingresses   = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	policies    = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
)

// addAttached makes the attached objects of workloads desired: autoscalers, PodDisruptionBudgets, NetworkPolicies, and what
// routes to their Services.
func (d *draft) addAttached(workloads []*unstructured.Unstructured) error {
	for _, autoscaler := range d.originalsOf(autoscalers) {
		if of, ok := scaleTarget(autoscaler); ok && d.desired[of] != nil {
			if _, err := d.add(autoscaler, "it scales "+of.String()); err != nil {
				return err
			}
		}
	}
	if err := d.addSelecting(budgets, workloads, "spec", "selector"); err != nil {
		return err
	}
	if err := d.addSelecting(policies, workloads, "spec", "podSelector"); err != nil {
		return err
	}
	services, err := d.unpatchedServices()
	if err != nil {
		return err
	}
	if _, err := d.addRoutesTo(ingresses, services); err != nil {
		return err
	}
	return d.addGatewayAPI(services)
}

// addSelecting makes the objects of a kind desired whose selector, at path, selects Pods of workloads.
func (d *draft) addSelecting(kind schema.GroupKind, workloads []*unstructured.Unstructured, path ...string) error {
	for _, object := range d.originalsOf(kind) {
		of := firstSelected(object, workloads, path...)
		if of == nil {
			continue
		}
		if _, err := d.add(object, "it is about "+KeyOf(of).String()); err != nil {
			return err
		}
	}
	return nil
}

// unpatchedServices returns the Services that workloads reference without the environment's patches. An Ingress brings its
// certificates along, and a patch must not reach certificates that its author has no permission to read.
func (d *draft) unpatchedServices() (sets.Set[string], error) {
	selecting, err := references.Selecting(d.in.originals(), d.unpatched)
	if err != nil {
		return nil, err
	}
	targets := d.unpatchedRefs.Clone()
	for _, ref := range selecting {
		targets.Insert(ref.Target)
	}
	names := sets.New[string]()
	for target := range targets {
		if target.Type == references.Service && d.desired[keyOf(target)] != nil {
			names.Insert(target.Name)
		}
	}
	return names, nil
}

// addRoutesTo makes the objects of a kind desired that route to one of the Services, with their other references, and
// returns them. Only the unpatched backends count: patches can change them, but cannot add other routes.
func (d *draft) addRoutesTo(kind schema.GroupKind, services sets.Set[string]) ([]*desiredObject, error) {
	var found []*desiredObject
	for _, object := range d.originalsOf(kind) {
		w, omitted, err := d.desiredOf(object)
		if err != nil {
			return nil, err
		}
		of := object
		if w != nil {
			of = w.unpatched
		}
		refs, err := references.Of(of)
		if err != nil {
			return nil, err
		}
		to := slices.IndexFunc(refs, func(r references.Reference) bool { return r.Type == references.Service && services.Has(r.Name) })
		if to < 0 {
			continue
		}
		if w == nil {
			if d.in.Environment.Spec.Adapt.IngressHosts.Copied() {
				d.warn(fmt.Sprintf("%s is not copied: %s", KeyOf(object), omitted))
			}
			continue
		}
		w.reason = "it leads to Service " + refs[to].Name
		d.desired[KeyOf(object)] = w
		found = append(found, w)
		if err := d.addReferencesOf(w); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// scaleTarget returns the key of the workload that an autoscaler scales.
func scaleTarget(autoscaler *unstructured.Unstructured) (Key, bool) {
	of, ok, err := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	if !ok || err != nil {
		return Key{}, false
	}
	gv, err := schema.ParseGroupVersion(of["apiVersion"])
	return Key{schema.GroupKind{Group: gv.Group, Kind: of["kind"]}, of["name"]}, err == nil
}

// firstSelected returns the first workload whose Pods an object selects. A NetworkPolicy without a selector selects all.
func firstSelected(by *unstructured.Unstructured, workloads []*unstructured.Unstructured, path ...string) *unstructured.Unstructured {
	content, ok, err := unstructured.NestedMap(by.Object, path...)
	if !ok && KeyOf(by).GroupKind != policies || err != nil {
		return nil
	}
	var written metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &written) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&written)
	if err != nil {
		return nil
	}
	for _, workload := range workloads {
		if selector.Matches(podLabels(workload)) {
			return workload
		}
	}
	return nil
}

// podLabels returns the labels of a workload's Pod template.
func podLabels(workload *unstructured.Unstructured) labels.Set {
	path := []string{"spec", "template", "metadata", "labels"}
	if workload.GetKind() == "CronJob" {
		path = append([]string{"spec", "jobTemplate"}, path...)
	}
	found, _, err := unstructured.NestedStringMap(workload.Object, path...)
	if err != nil {
		return nil
	}
	return found
}
