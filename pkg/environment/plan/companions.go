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

// The kinds that are about workloads without being referred to.
var (
	autoscalers = schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}
	budgets     = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}
	ingresses   = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}
	policies    = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
)

// companions takes in what is about workloads: what scales them, how many may be evicted, who may reach them, what leads to their
// Services.
func (d *draft) companions(workloads []*unstructured.Unstructured) error {
	for _, autoscaler := range d.originals(autoscalers) {
		if of, ok := scaled(autoscaler); ok && d.wanted[of] != nil {
			if _, err := d.want(autoscaler, "it scales "+of.String()); err != nil {
				return err
			}
		}
	}
	if err := d.selecting(budgets, workloads, "spec", "selector"); err != nil {
		return err
	}
	if err := d.selecting(policies, workloads, "spec", "podSelector"); err != nil {
		return err
	}
	services, err := d.services()
	if err != nil {
		return err
	}
	if _, err := d.leadingTo(ingresses, services); err != nil {
		return err
	}
	return d.gatewayAPI(services)
}

// selecting takes in the objects of a kind whose selector, at a path, selects Pods of workloads.
func (d *draft) selecting(kind schema.GroupKind, workloads []*unstructured.Unstructured, path ...string) error {
	for _, object := range d.originals(kind) {
		of := selected(object, workloads, path...)
		if of == nil {
			continue
		}
		if _, err := d.want(object, "it is about "+KeyOf(of).String()); err != nil {
			return err
		}
	}
	return nil
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

// leadingTo takes in the objects of a kind that lead to Services, with what else they refer to, and returns them. Patches of the
// environment can have them lead elsewhere, and bring no others.
func (d *draft) leadingTo(kind schema.GroupKind, services sets.Set[string]) ([]*wanted, error) {
	var found []*wanted
	for _, object := range d.originals(kind) {
		w, omitted, err := d.copyOf(object)
		if err != nil {
			return nil, err
		}
		of := object
		if w != nil {
			of = w.undeclared
		}
		leads, err := references.Of(of)
		if err != nil {
			return nil, err
		}
		to := slices.IndexFunc(leads, func(r references.Reference) bool { return r.Type == references.Service && services.Has(r.Name) })
		if to < 0 {
			continue
		}
		if w == nil {
			if d.Environment.Spec.Adapt.IngressHosts.Copied() {
				d.report(fmt.Sprintf("%s is not copied: %s", KeyOf(object), omitted))
			}
			continue
		}
		d.wanted[KeyOf(object)], d.why[KeyOf(object)] = w, "it leads to Service "+leads[to].Name
		found = append(found, w)
		if err := d.takeFor(w); err != nil {
			return nil, err
		}
	}
	return found, nil
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

// selected returns the first of the workloads whose pods an object selects. A NetworkPolicy without a selector selects all.
func selected(by *unstructured.Unstructured, workloads []*unstructured.Unstructured, path ...string) *unstructured.Unstructured {
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
