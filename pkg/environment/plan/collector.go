// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// collector adds desired objects to a selection, with what they reference.
type collector struct {
	in        *Input
	objects   *inputObjects
	copies    *copier
	selection *selection
	report    *report
}

// add makes the copy of an object desired. It returns nil if the object has no copy.
func (c *collector) add(object *unstructured.Unstructured, reason string) (*desiredObject, error) {
	key := KeyOf(object)
	if w, ok := c.selection.desired[key]; ok {
		return w, nil
	}
	w, omitted, err := c.desiredOf(object)
	if err != nil {
		return nil, err
	}
	if w != nil {
		w.reason = reason
		c.selection.desired[key] = w
	} else if key != defaultAccount {
		c.report.warn(fmt.Sprintf("%s is not copied: %s", key, omitted))
	}
	return w, nil
}

// desiredOf returns the desired object for an object of the source or the snapshot. If it has no copy, the first result is
// nil and the second is the reason.
func (c *collector) desiredOf(object *unstructured.Unstructured) (*desiredObject, string, error) {
	if !c.in.hasSnapshot() && !c.in.Denied.Has(KeyOf(object).GroupKind) {
		return c.copies.copy(object)
	}
	as := c.copies.setLabels(object.DeepCopy())
	return &desiredObject{object: as, unpatched: as}, "", nil
}

// addFromBase restores a needed object from its base if neither the source nor the target has it. Otherwise it returns nil,
// and the target's object stays as it is.
func (c *collector) addFromBase(key Key) *desiredObject {
	base := c.in.Base[key]
	if base == nil || c.in.hasSnapshot() || c.objects.live[key] != nil && c.selection.desired[key] == nil {
		return nil
	}
	if c.selection.desired[key] == nil {
		as, why := c.copies.setLabels(base.DeepCopy()), "the source does not have it"
		if _, denied := c.report.denialOf(key); denied {
			why = "it is not read in the source"
		}
		c.selection.desired[key] = &desiredObject{object: as, unpatched: as, reason: why + ", and it is made again as it was"}
	}
	return c.selection.desired[key]
}

// addReferencesOf makes desired what an object references.
func (c *collector) addReferencesOf(w *desiredObject) error {
	refs, err := c.copies.referencesOf(w.object)
	return errors.Join(err, c.addUnpatchedRefs(w.unpatched), c.addReferences(refs))
}

// addUnpatchedRefs records the references of an object without the environment's patches.
func (c *collector) addUnpatchedRefs(object *unstructured.Unstructured) error {
	refs, err := c.copies.referencesOf(object)
	for _, ref := range refs {
		c.selection.unpatchedRefs.Insert(ref.Target)
	}
	return err
}

// addReferences makes the targets of references desired, and recursively those of ServiceAccounts among them. A patch can lead to an account
// without naming it: a Pod without one uses that of its namespace.
func (c *collector) addReferences(refs []references.Reference) error {
	refs = c.permitted(refs)
	c.selection.refs = references.Merge(c.selection.refs, refs)
	for _, ref := range refs {
		if ref.Type == references.PersistentVolumeClaim {
			continue
		}
		w, err := c.addReferenced(keyOf(ref.Target), referredBy(ref))
		if err != nil {
			return err
		}
		if w == nil || ref.Type != references.ServiceAccount {
			continue
		}
		if c.selection.unpatchedRefs.Has(ref.Target) {
			if err := c.addUnpatchedRefs(w.unpatched); err != nil {
				return err
			}
		}
		secrets, err := c.copies.referencesOf(w.object)
		if err != nil {
			return err
		}
		if err := c.addReferences(secrets); err != nil {
			return err
		}
	}
	return nil
}

// permitted returns the references without those to Secrets that are not copied by the consent of the catalog's editor.
func (c *collector) permitted(refs []references.Reference) []references.Reference {
	if !c.in.SecretsByConsent {
		return refs
	}
	return slices.DeleteFunc(slices.Clone(refs), func(ref references.Reference) bool {
		refused := ref.Type == references.Secret && !c.selection.unpatchedRefs.Has(ref.Target)
		if refused {
			c.report.warn(fmt.Sprintf("%s is not copied: only patches of the environment lead to it, and it is not known whether the requester "+
				"of the sync may read it; name it in spec.include to have that checked", keyOf(ref.Target)))
		}
		return refused
	})
}

// addReferenced makes a referenced object desired. It returns nil if the object has no copy.
func (c *collector) addReferenced(key Key, why string) (*desiredObject, error) {
	if object, ok := c.objects.originals[key]; ok {
		return c.add(object, why)
	}
	return c.addFromBase(key), nil
}
