// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// IsOnlyIncluded reports whether objects of a kind are copied only if spec.include names them.
func IsOnlyIncluded(kind schema.GroupKind) bool {
	_, written := ranks[kind]
	return !written && v1alpha1.IsCustomGroup(kind.Group)
}

// addIncluded makes desired what spec.include names. ConfigMaps and Secrets count as references of the environment itself:
// they are in the index, and their changes are detected.
func (d *discovery) addIncluded() error {
	if len(d.in.Only) > 0 {
		return nil
	}
	var refs []references.Reference
	for i, entry := range d.in.Environment.Spec.Include {
		key, path := KeyOfIncluded(entry), fmt.Sprintf("/spec/include/%d", i)
		if key.Group != "" {
			if err := d.addIncludedCustomResource(key); err != nil {
				return err
			}
			continue
		}
		field, err := fieldpath.Parse(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		refs = append(refs, references.Reference{
			Target:    references.Target{Type: references.Type(key.Kind), Name: key.Name},
			Referrers: []references.Referrer{{Kind: string(v1alpha1.SubjectEnvironment), Name: d.in.Environment.Name, Path: field}},
		})
	}
	return d.collector.addReferences(references.Merge(refs))
}

// addIncludedCustomResource makes a custom resource desired. Custom resources are not in the index, so the action Cluster
// does not copy them.
func (d *discovery) addIncludedCustomResource(key Key) error {
	if object, ok := d.objects.originals[key]; ok {
		_, err := d.collector.add(object, "spec.include names it")
		return err
	}
	if d.in.hasSnapshot() {
		return nil
	}
	if !IsOnlyIncluded(key.GroupKind) {
		// Validation rejects this in new objects.
		d.report.failSource(key, v1alpha1.ReasonRefused, "environments copy nothing of the API group "+key.Group)
		return nil
	}
	if why, withheld := d.in.DeniedObjects[key]; withheld {
		d.report.failSource(key, why.Reason, why.Message)
		return nil
	}
	d.selection.missing.Insert(key)
	d.collector.addFromBase(key)
	d.report.failSource(key, v1alpha1.ReasonSourceMissing, "does not exist")
	return nil
}

// isDeniedInclude reports whether spec.include names a custom resource that is denied. A snapshot takes nothing from the
// source, so it denies nothing.
func (s *Input) isDeniedInclude(key Key) bool {
	_, withheld := s.DeniedObjects[key]
	return withheld && s.includes(key) && !s.hasSnapshot()
}

// includes reports whether spec.include names an object.
func (s *Input) includes(key Key) bool {
	for _, entry := range s.Environment.Spec.Include {
		if KeyOfIncluded(entry) == key {
			return true
		}
	}
	return false
}
