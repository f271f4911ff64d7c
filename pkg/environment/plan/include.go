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

// KeyOfIncluded returns what spec.include names with an entry.
func KeyOfIncluded(o v1alpha1.IncludedObject) Key {
	// What has passed validation can be read.
	gv, _ := schema.ParseGroupVersion(o.APIVersion)
	return Key{schema.GroupKind{Group: gv.Group, Kind: o.Kind}, o.Name}
}

// IsOnlyIncluded says whether objects of a kind are copied only where spec.include names them.
func IsOnlyIncluded(kind schema.GroupKind) bool {
	_, written := ranks[kind]
	return !written && v1alpha1.IsCustomGroup(kind.Group)
}

// include takes in what the environment names beside what its workloads refer to. ConfigMaps and Secrets are those that the
// environment itself refers to: they are recorded, and their changes are noticed.
func (d *draft) include() error {
	if len(d.Only) > 0 {
		return nil
	}
	var refs []references.Reference
	for i, entry := range d.Environment.Spec.Include {
		key, path := KeyOfIncluded(entry), fmt.Sprintf("/spec/include/%d", i)
		if key.Group != "" {
			if err := d.includeCustom(key); err != nil {
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
			Referrers: []references.Referrer{{Kind: string(v1alpha1.SubjectEnvironment), Name: d.Environment.Name, Path: field}},
		})
	}
	return d.take(references.Merge(refs))
}

// includeCustom takes in a custom resource. Which there are is not recorded, and so a plan that only refreshes brings none.
func (d *draft) includeCustom(key Key) error {
	if object, ok := d.made[key]; ok {
		_, err := d.want(object, "spec.include names it")
		return err
	}
	if d.isAsApplied() {
		return nil
	}
	if !IsOnlyIncluded(key.GroupKind) {
		// Validation keeps it out of new objects.
		d.failSource(key, v1alpha1.ReasonRefused, "environments copy nothing of the API group "+key.Group)
		return nil
	}
	if why, withheld := d.WithheldObjects[key]; withheld {
		d.failSource(key, why.Reason, why.Message)
		return nil
	}
	d.absent.Insert(key)
	d.rebuild(key)
	d.failSource(key, v1alpha1.ReasonSourceMissing, "does not exist")
	return nil
}

// isWithheld says whether an object is a custom resource that spec.include names and that is withheld. An environment that is to have
// what it had takes nothing from the source.
func (d *draft) isWithheld(key Key) bool {
	_, withheld := d.WithheldObjects[key]
	return withheld && d.includes(key) && !d.isAsApplied()
}

// includes says whether spec.include names an object.
func (d *draft) includes(key Key) bool {
	for _, entry := range d.Environment.Spec.Include {
		if KeyOfIncluded(entry) == key {
			return true
		}
	}
	return false
}
