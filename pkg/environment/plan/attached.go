// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
func (d *discovery) addAttached(workloads, unpatched []*unstructured.Unstructured) error {
	for _, autoscaler := range d.objects.originalsOf(autoscalers) {
		if of, ok := scaleTarget(autoscaler); ok && d.selection.desired[of] != nil {
			if _, err := d.collector.add(autoscaler, "it scales "+of.String()); err != nil {
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
	return d.routes.add(unpatched)
}

// addSelecting makes the objects of a kind desired whose selector, at path, selects Pods of workloads.
func (d *discovery) addSelecting(kind schema.GroupKind, workloads []*unstructured.Unstructured, path ...string) error {
	for _, object := range d.objects.originalsOf(kind) {
		of := firstSelected(object, workloads, path...)
		if of == nil {
			continue
		}
		if _, err := d.collector.add(object, "it is about "+KeyOf(of).String()); err != nil {
			return err
		}
	}
	return nil
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
