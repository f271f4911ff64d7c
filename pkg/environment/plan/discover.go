// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// discover makes the catalog's workloads desired, with everything they reference and everything attached to them.
func (d *draft) discover() error {
	var workloads []*unstructured.Unstructured
	for _, object := range sortedByName(d.in.workloads()) {
		if key := KeyOf(object); !d.in.isMember(key) || !d.in.isSelected(key) {
			continue
		}
		w, err := d.add(object, d.in.workloadReason())
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		workloads = append(workloads, w.object)
		d.unpatched = append(d.unpatched, w.unpatched)
		if err := d.addUnpatchedRefs(w.unpatched); err != nil {
			return err
		}
	}
	if err := d.addReferencedBy(workloads); err != nil {
		return err
	}
	if err := errors.Join(d.addIncluded(), d.addAttached(workloads)); err != nil {
		return err
	}
	if d.in.hasSnapshot() {
		return d.addRestOfSnapshot()
	}
	d.reportMissing()
	return d.reportMissingPermissions()
}

// addUnpatchedRefs records the references of an object without the environment's patches.
func (d *draft) addUnpatchedRefs(object *unstructured.Unstructured) error {
	refs, err := references.Of(object)
	for _, ref := range refs {
		d.unpatchedRefs.Insert(ref.Target)
	}
	return err
}

// addReferencedBy makes desired what workloads reference, and the Services that select their Pods.
func (d *draft) addReferencedBy(workloads []*unstructured.Unstructured) error {
	services, err := references.Selecting(d.in.originals(), workloads)
	if err != nil {
		return err
	}
	refs, err := references.Of(workloads...)
	if err != nil {
		return err
	}
	return d.addReferences(references.Merge(refs, services))
}

// addReferences makes the targets of references desired, and recursively those of ServiceAccounts among them.
func (d *draft) addReferences(refs []references.Reference) error {
	d.refs = references.Merge(d.refs, refs)
	for _, ref := range refs {
		if ref.Type == references.PersistentVolumeClaim {
			continue
		}
		w, err := d.addReferenced(keyOf(ref.Target), referredBy(ref))
		if err != nil {
			return err
		}
		if w == nil || ref.Type != references.ServiceAccount {
			continue
		}
		if err := d.addUnpatchedRefs(w.unpatched); err != nil {
			return err
		}
		secrets, err := references.Of(w.object)
		if err != nil {
			return err
		}
		if err := d.addReferences(secrets); err != nil {
			return err
		}
	}
	return nil
}

// addReferenced makes a referenced object desired. It returns nil if the object has no copy.
func (d *draft) addReferenced(key Key, why string) (*desiredObject, error) {
	if object, ok := d.originals[key]; ok {
		return d.add(object, why)
	}
	return d.addFromBase(key), nil
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

// reportMissing records which referenced objects are missing or never copied.
func (d *draft) reportMissing() {
	for _, ref := range d.refs {
		key := keyOf(ref.Target)
		if ref.Type == references.PersistentVolumeClaim {
			d.reportMissingClaim(ref)
			continue
		}
		if _, ok := d.source[key]; ok {
			continue
		}
		// A target of patches alone may belong to the environment's users.
		if live := d.live[key]; !d.unpatchedRefs.Has(ref.Target) && !d.in.includes(key) && live != nil && d.in.ownerOf(live) == ownerForeign {
			continue
		}
		d.missing.Insert(key)
		d.failMissing(key, ref.Optional())
		if ref.Type == references.Service && !d.in.Denied.Has(key.GroupKind) && d.live[key] == nil {
			d.warn(fmt.Sprintf("%s is not in %s: %s", key, d.in.SourceNamespace, referredBy(ref)))
		}
	}
	d.failDeniedServices()
}

// failMissing records that the source lacks an object, unless it is optional.
func (d *draft) failMissing(key Key, optional bool) {
	switch {
	case d.in.Denied.Has(key.GroupKind):
		d.failDenied(key, optional)
		return
	case optional:
		return
	}
	d.failSource(key, v1alpha1.ReasonSourceMissing, "does not exist")
}

// failSource records why an object of the source is not copied.
func (d *draft) failSource(key Key, reason, why string) {
	d.plan.Missing = append(d.plan.Missing, v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: d.in.SourceNamespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("Failed to sync %s '%s' from %s - %s", key.Kind, key.Name, d.in.SourceNamespace, why),
	})
}

// reportMissingClaim records that the target lacks a PersistentVolumeClaim, which is never copied.
func (d *draft) reportMissingClaim(ref references.Reference) {
	if d.live[keyOf(ref.Target)] == nil {
		d.addNotCopied(string(ref.Type), ref.Name, v1alpha1.NotCopiedHoldsData)
		d.warn(fmt.Sprintf("PersistentVolumeClaim %s is not copied, and %s does not have it: %s",
			ref.Name, d.in.Environment.Spec.TargetNamespace, referredBy(ref)))
	}
}

// originalsOf returns the originals of a kind, sorted.
func (d *draft) originalsOf(kind schema.GroupKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, object := range d.originals {
		if key.GroupKind == kind {
			found = append(found, object)
		}
	}
	return sortedByName(found)
}

// sortedByName sorts objects by name and kind, so that plans do not depend on the order of lists.
func sortedByName(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetName(), b.GetName()), strings.Compare(a.GetKind(), b.GetKind()))
	})
}
