// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Selecting returns the Services whose selectors match the pod labels of workloads, with those labels as referrers,
// sorted by name. It omits Services without a selector and those of type ExternalName. Services and workloads must be
// of one namespace. Objects of other kinds add nothing.
func Selecting(services, workloads []*unstructured.Unstructured) ([]Reference, error) {
	selectors, err := selectorsOf(services)
	if err != nil {
		return nil, err
	}
	var found [][]Reference
	for _, object := range workloads {
		ofPods, at, err := podLabels(object)
		if err != nil {
			return nil, err
		}
		if at == nil {
			continue
		}
		f := finder{kind: object.GetKind(), name: object.GetName()}
		for name, selector := range selectors {
			if selector.Matches(ofPods) {
				f.add(Service, name, at, use{})
			}
		}
		found = append(found, f.found)
	}
	return Merge(found...), nil
}

// labeled is what podLabels reads of a Pod template.
type labeled struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
}

// podLabels returns the labels of the Pods of a workload and their path, which is nil if the object is no workload.
func podLabels(object *unstructured.Unstructured) (labels.Set, path, error) {
	at := templateAt(object)
	if at == nil {
		return nil, nil, nil
	}
	var workload struct {
		Spec struct {
			Template    labeled `json:"template"`
			JobTemplate struct {
				Spec struct {
					Template labeled `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := read(object, &workload); err != nil {
		return nil, nil, err
	}
	template := workload.Spec.Template
	if object.GetKind() == "CronJob" {
		template = workload.Spec.JobTemplate.Spec.Template
	}
	return template.Metadata.Labels, at.field("metadata", "labels"), nil
}

// selectorsOf returns the selectors of Services by name.
func selectorsOf(services []*unstructured.Unstructured) (map[string]labels.Selector, error) {
	selectors := map[string]labels.Selector{}
	for _, object := range services {
		if gk := object.GroupVersionKind().GroupKind(); gk.Group != "" || gk.Kind != string(Service) {
			continue
		}
		var service corev1.Service
		if err := read(object, &service); err != nil {
			return nil, err
		}
		if len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName {
			selectors[object.GetName()] = labels.SelectorFromSet(service.Spec.Selector)
		}
	}
	return selectors, nil
}
