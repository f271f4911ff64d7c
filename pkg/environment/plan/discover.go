// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// discovery selects the objects of a sync of the catalog.
type discovery struct {
	in        *Input
	objects   *inputObjects
	selection *selection
	report    *report
	collector *collector
	routes    *routeCollector
}

// run makes the catalog's workloads desired, with everything they reference and everything attached to them.
func (d *discovery) run() error {
	workloads, unpatched, err := d.addWorkloads()
	if err != nil {
		return err
	}
	if err := d.addReferencedBy(workloads); err != nil {
		return err
	}
	if err := errors.Join(d.addIncluded(), d.addAttached(workloads, unpatched)); err != nil {
		return err
	}
	if d.in.hasSnapshot() {
		return d.addRestOfSnapshot()
	}
	return nil
}

// addWorkloads makes the workloads desired that the sync includes. It returns the copies, with and without the environment's
// patches.
func (d *discovery) addWorkloads() (patched, unpatched []*unstructured.Unstructured, _ error) {
	for _, object := range sortedByName(d.in.workloads()) {
		if key := KeyOf(object); !d.in.isMember(key) || !d.in.isSelected(key) {
			continue
		}
		w, err := d.collector.add(object, d.in.workloadReason())
		if err != nil {
			return nil, nil, err
		}
		if w == nil {
			continue
		}
		patched, unpatched = append(patched, w.object), append(unpatched, w.unpatched)
		if err := d.collector.addUnpatchedRefs(w.unpatched); err != nil {
			return nil, nil, err
		}
	}
	return patched, unpatched, nil
}

// addReferencedBy makes desired what workloads reference, and the Services that select their Pods.
func (d *discovery) addReferencedBy(workloads []*unstructured.Unstructured) error {
	services, err := references.Selecting(d.in.originals(), workloads)
	if err != nil {
		return err
	}
	lists := [][]references.Reference{services}
	for _, workload := range workloads {
		refs, err := d.collector.copies.referencesOf(workload)
		if err != nil {
			return err
		}
		lists = append(lists, refs)
	}
	return d.collector.addReferences(references.Merge(lists...))
}

// referredBy describes the referrers of an object.
func referredBy(ref references.Reference) string {
	first := ref.Referrers[0]
	others := sets.New[string]()
	for _, referrer := range ref.Referrers {
		others.Insert(referrer.Kind + " " + referrer.Name)
	}
	if n := others.Len() - 1; n > 0 {
		return fmt.Sprintf("%s %s and %d more refer to it", first.Kind, first.Name, n)
	}
	return fmt.Sprintf("%s %s refers to it", first.Kind, first.Name)
}
