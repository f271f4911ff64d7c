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

// discover takes in the workloads that the catalog offers, and what comes with them.
func (d *draft) discover() error {
	var workloads []*unstructured.Unstructured
	for _, object := range inNameOrder(d.offered()) {
		if key := KeyOf(object); !d.isOffered(key) || !d.isNamed(key) {
			continue
		}
		w, err := d.want(object, d.whyOffered())
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		workloads = append(workloads, w.desired)
		d.undeclared = append(d.undeclared, w.undeclared)
		if err := d.require(w.undeclared); err != nil {
			return err
		}
	}
	if err := d.follow(workloads); err != nil {
		return err
	}
	if err := errors.Join(d.include(), d.companions(workloads)); err != nil {
		return err
	}
	if d.isAsApplied() {
		return d.takeRest()
	}
	d.takeStock()
	return d.lacking()
}

// require takes down what an object needs of the source.
func (d *draft) require(object *unstructured.Unstructured) error {
	refs, err := references.Of(object)
	for _, ref := range refs {
		d.required.Insert(ref.Target)
	}
	return err
}

// follow takes in what workloads refer to, and the Services that select their pods.
func (d *draft) follow(workloads []*unstructured.Unstructured) error {
	services, err := references.Selecting(d.origin(), workloads)
	if err != nil {
		return err
	}
	refs, err := references.Of(workloads...)
	if err != nil {
		return err
	}
	return d.take(references.Merge(refs, services))
}

// take takes in what references lead to, and what accounts among that refer to.
func (d *draft) take(refs []references.Reference) error {
	d.found = references.Merge(d.found, refs)
	for _, ref := range refs {
		if ref.Type == references.PersistentVolumeClaim {
			continue
		}
		w, err := d.wantReferred(keyOf(ref.Target), refersTo(ref))
		if err != nil {
			return err
		}
		if w == nil || ref.Type != references.ServiceAccount {
			continue
		}
		if err := d.require(w.undeclared); err != nil {
			return err
		}
		secrets, err := references.Of(w.desired)
		if err != nil {
			return err
		}
		if err := d.take(secrets); err != nil {
			return err
		}
	}
	return nil
}

// wantReferred takes in an object that something needs, if it has a copy.
func (d *draft) wantReferred(key Key, why string) (*wanted, error) {
	if object, ok := d.made[key]; ok {
		return d.want(object, why)
	}
	return d.rebuild(key), nil
}

// refersTo says, in a few words, what refers to something.
func refersTo(ref references.Reference) string {
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

// keyOf is what a reference leads to.
func keyOf(target references.Target) Key {
	return Key{schema.GroupKind{Kind: string(target.Type)}, target.Name}
}

// takeStock says what is missing and what is not copied.
func (d *draft) takeStock() {
	for _, ref := range d.found {
		key := keyOf(ref.Target)
		if ref.Type == references.PersistentVolumeClaim {
			d.reportClaim(ref)
			continue
		}
		if _, ok := d.source[key]; ok {
			continue
		}
		// What only patches of the environment refer to may be its people's own.
		if live := d.live[key]; !d.required.Has(ref.Target) && !d.includes(key) && live != nil && d.ownerOf(live) == others {
			continue
		}
		d.absent.Insert(key)
		d.missing(key, ref.Optional())
		if ref.Type == references.Service && !d.Withheld.Has(key.GroupKind) && d.live[key] == nil {
			d.report(fmt.Sprintf("%s is not in %s: %s", key, d.SourceNamespace, refersTo(ref)))
		}
	}
	d.withholdServices()
}

// missing takes down what the source should have, unless workloads can do without.
func (d *draft) missing(key Key, optional bool) {
	switch {
	case d.Withheld.Has(key.GroupKind):
		d.withhold(key, optional)
		return
	case optional:
		return
	}
	d.failSource(key, v1alpha1.ReasonSourceMissing, "does not exist")
}

// failSource takes down why an object of the source is not copied.
func (d *draft) failSource(key Key, reason, why string) {
	d.plan.Missing = append(d.plan.Missing, v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: d.SourceNamespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("Failed to sync %s '%s' from %s - %s", key.Kind, key.Name, d.SourceNamespace, why),
	})
}

func (d *draft) reportClaim(ref references.Reference) {
	if d.live[keyOf(ref.Target)] == nil {
		d.notCopied(string(ref.Type), ref.Name, v1alpha1.NotCopiedHoldsData)
		d.report(fmt.Sprintf("PersistentVolumeClaim %s is not copied, and %s does not have it: %s",
			ref.Name, d.Environment.Spec.TargetNamespace, refersTo(ref)))
	}
}

// originals returns the objects of a kind that copies can be made of.
func (d *draft) originals(kind schema.GroupKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, object := range d.made {
		if key.GroupKind == kind {
			found = append(found, object)
		}
	}
	return inNameOrder(found)
}

// inNameOrder returns objects in the order of their names and kinds, so that reasons do not depend on who listed them how.
func inNameOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetName(), b.GetName()), strings.Compare(a.GetKind(), b.GetKind()))
	})
}
