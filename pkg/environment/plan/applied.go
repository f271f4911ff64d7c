// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// isAsApplied says whether the environment is to have what it had.
func (s *Situation) isAsApplied() bool { return s.Applied != nil }

// origin is what wanted objects are made of: the source, or what was applied, as is all of what is withheld in the source.
func (s *Situation) origin() []*unstructured.Unstructured {
	if s.isAsApplied() {
		return s.Applied
	}
	return slices.Concat(s.Source, s.lastApplied())
}

// offered are the workloads that the catalog offers, or those that were applied.
func (s *Situation) offered() []*unstructured.Unstructured {
	if !s.isAsApplied() {
		return s.Workloads
	}
	var workloads []*unstructured.Unstructured
	for _, object := range s.Applied {
		if KeyOf(object).isWorkload() {
			workloads = append(workloads, object)
		}
	}
	return workloads
}

func (s *Situation) whyOffered() string {
	if s.isAsApplied() {
		return s.whyApplied()
	}
	return "the catalog offers it"
}

func (s *Situation) whyApplied() string {
	return fmt.Sprintf("it was applied with revision %d", s.Revision)
}

// copyOf returns what is wanted of an object, nil if it has no copy, and why.
func (d *draft) copyOf(object *unstructured.Unstructured) (*wanted, string, error) {
	if !d.isAsApplied() && !d.Withheld.Has(KeyOf(object).GroupKind) {
		return d.copies.copy(object)
	}
	as := d.copies.labelled(object.DeepCopy())
	return &wanted{desired: as, undeclared: as}, "", nil
}

// takeRest takes in all else that was applied.
func (d *draft) takeRest() error {
	if len(d.Only) > 0 {
		return nil
	}
	for _, object := range inNameOrder(d.Applied) {
		if key := KeyOf(object); key.isWorkload() && !d.isOffered(key) {
			continue
		}
		if _, err := d.want(object, d.whyApplied()); err != nil {
			return err
		}
	}
	return nil
}

// describedAsApplied adds to a record what is known of what was applied. It has the hash of an object of the source if a copy of
// that would be the same, and another one otherwise.
func (d *draft) describedAsApplied(
	record v1alpha1.EnvironmentDependencyRecord, inSource *unstructured.Unstructured,
) (v1alpha1.EnvironmentDependencyRecord, error) {
	w, ok := d.wanted[recordKey(&record)]
	if !ok {
		return record, nil
	}
	record.Keys = keysOf(w.desired)
	of := w.desired
	if inSource != nil {
		now, _, err := d.copies.copy(inSource)
		if err != nil {
			return record, err
		}
		if now != nil && reflect.DeepEqual(now.desired.Object, w.desired.Object) {
			of = inSource
		}
	}
	var err error
	record.Hash, err = Hash(d.hasher, of)
	return record, err
}
