// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/references"
)

// The kinds that are about workloads without being referred to.
var (
	autoscalers = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	budgets     = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	ingresses   = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
)

// companions takes in what is about workloads: what scales them, how many may be evicted, what leads to their Services.
func (d *draft) companions(workloads []*unstructured.Unstructured) error {
	for _, autoscaler := range d.originals(autoscalers) {
		if of, ok := scaled(autoscaler); ok && d.wanted[of] != nil {
			if _, err := d.want(autoscaler, "it scales "+of.String()); err != nil {
				return err
			}
		}
	}
	for _, budget := range d.originals(budgets) {
		of := selected(budget, workloads)
		if of == nil {
			continue
		}
		if _, err := d.want(budget, "it is about "+KeyOf(of).String()); err != nil {
			return err
		}
	}
	services, err := d.services()
	if err != nil {
		return err
	}
	return d.leadingTo(services)
}

// services are the Services that workloads refer to without patches of the environment. An Ingress brings its certificates along,
// which nobody whose patches lead elsewhere needs the right to read.
func (d *draft) services() (sets.Set[string], error) {
	selecting, err := references.Selecting(d.origin(), d.undeclared)
	if err != nil {
		return nil, err
	}
	targets := d.required.Clone()
	for _, ref := range selecting {
		targets.Insert(ref.Target)
	}
	names := sets.New[string]()
	for target := range targets {
		if target.Type == references.Service && d.wanted[keyOf(target)] != nil {
			names.Insert(target.Name)
		}
	}
	return names, nil
}

// leadingTo takes in the Ingresses that lead to Services, with what else they refer to. Patches of the environment can have them lead
// elsewhere, and bring no others.
func (d *draft) leadingTo(services sets.Set[string]) error {
	for _, ingress := range d.originals(ingresses) {
		w, _, err := d.copyOf(ingress)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		leads, err := references.Of(w.undeclared)
		if err != nil {
			return err
		}
		to := slices.IndexFunc(leads, func(r references.Reference) bool { return r.Type == references.Service && services.Has(r.Name) })
		if to < 0 {
			continue
		}
		d.wanted[KeyOf(ingress)], d.why[KeyOf(ingress)] = w, "it leads to Service "+leads[to].Name
		refs, err := references.Of(w.desired)
		if err := errors.Join(err, d.require(w.undeclared), d.take(refs)); err != nil {
			return err
		}
	}
	return nil
}

// scaled returns what an autoscaler scales.
func scaled(autoscaler *unstructured.Unstructured) (Key, bool) {
	of, ok, err := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	if !ok || err != nil {
		return Key{}, false
	}
	gv, err := schema.ParseGroupVersion(of["apiVersion"])
	return Key{schema.GroupKind{Group: gv.Group, Kind: of["kind"]}, of["name"]}, err == nil
}

// selected returns the first of the workloads whose pods a budget selects.
func selected(budget *unstructured.Unstructured, workloads []*unstructured.Unstructured) *unstructured.Unstructured {
	content, ok, err := unstructured.NestedMap(budget.Object, "spec", "selector")
	if !ok || err != nil {
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

// podLabels are the labels of a workload's pods.
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
