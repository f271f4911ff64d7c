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

// hasSnapshot reports whether the environment is to have an earlier state.
func (s *Input) hasSnapshot() bool { return s.Snapshot != nil }

// originals returns the objects that copies are made of: the snapshot, or the source and the last applied objects of denied
// types.
func (s *Input) originals() []*unstructured.Unstructured {
	if s.hasSnapshot() {
		return s.Snapshot
	}
	return slices.Concat(s.Source, s.lastAppliedServices())
}

// workloads returns the workloads of the snapshot or of the catalog.
func (s *Input) workloads() []*unstructured.Unstructured {
	if !s.hasSnapshot() {
		return s.Workloads
	}
	var workloads []*unstructured.Unstructured
	for _, object := range s.Snapshot {
		if KeyOf(object).isWorkload() {
			workloads = append(workloads, object)
		}
	}
	return workloads
}

func (s *Input) workloadReason() string {
	if s.hasSnapshot() {
		return s.snapshotReason()
	}
	return "the catalog offers it"
}

func (s *Input) snapshotReason() string {
	return fmt.Sprintf("it was applied with revision %d", s.Revision)
}

// addRestOfSnapshot makes all other objects of the snapshot desired.
func (d *discovery) addRestOfSnapshot() error {
	if len(d.in.Only) > 0 {
		return nil
	}
	for _, object := range sortedByName(d.in.Snapshot) {
		if key := KeyOf(object); key.isWorkload() && !d.in.isMember(key) {
			continue
		}
		if _, err := d.collector.add(object, d.in.snapshotReason()); err != nil {
			return err
		}
	}
	return nil
}

// describeFromSnapshot adds to a record what is known from the snapshot. The hash is the one of the source's object if its
// copy would be equal, so that the dependency does not count as changed.
func (b *indexBuilder) describeFromSnapshot(
	record v1alpha1.EnvironmentDependencyRecord, inSource *unstructured.Unstructured,
) (v1alpha1.EnvironmentDependencyRecord, error) {
	w, ok := b.selection.desired[recordKey(&record)]
	if !ok {
		return record, nil
	}
	record.Keys = dataKeys(w.object)
	of := w.object
	if inSource != nil {
		now, _, err := b.copies.copy(inSource)
		if err != nil {
			return record, err
		}
		if now != nil && reflect.DeepEqual(now.object.Object, w.object.Object) {
			of = inSource
		}
	}
	var err error
	record.Hash, err = Hash(b.hasher, of)
	return record, err
}
