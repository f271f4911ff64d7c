// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// report collects what a sync does not copy from the source, and why.
type report struct {
	sourceNamespace string
	denied          Denied
	consent         *consent

	missing   []v1alpha1.ObjectFailure
	notCopied []v1alpha1.NotCopiedObject
	warnings  []string
}

// warn adds a warning, once.
func (r *report) warn(warning string) {
	if !slices.Contains(r.warnings, warning) {
		r.warnings = append(r.warnings, warning)
	}
}

// denialOf returns why an object is not copied although the source may have it; false if it is copied.
func (r *report) denialOf(key Key) (Denial, bool) {
	switch {
	case r.denied.Has(key.GroupKind):
		return r.denied[v1alpha1.DependencyType(key.Kind)], true
	case r.consent.excludes(key):
		return r.consent.denial, true
	}
	return Denial{}, false
}

// failMissing records that the source lacks an object, unless it is optional.
func (r *report) failMissing(key Key, optional bool) {
	why, denied := r.denialOf(key)
	switch {
	case denied:
		r.failDenied(key, why, optional)
	case !optional:
		r.failSource(key, v1alpha1.ReasonSourceMissing, "does not exist")
	}
}

// failSource records why an object of the source is not copied.
func (r *report) failSource(key Key, reason, why string) {
	r.missing = append(r.missing, v1alpha1.ObjectFailure{
		Type: key.Kind, Namespace: r.sourceNamespace, Name: key.Name, Reason: reason,
		Message: fmt.Sprintf("Failed to sync %s '%s' from %s - %s", key.Kind, key.Name, r.sourceNamespace, why),
	})
}

// failDenied records that a needed object is not copied. An optional object is only a warning, because it may not exist in
// the source.
func (r *report) failDenied(key Key, why Denial, optional bool) {
	if optional {
		r.warn(fmt.Sprintf("%s is not copied from %s, if it is there: %s", key, r.sourceNamespace, why.Message))
		return
	}
	r.failSource(key, why.Reason, why.Message)
}

// failDeniedServices records that Services are denied if no single Service is known to be needed.
func (r *report) failDeniedServices() {
	why, ok := r.denied[v1alpha1.DependencyService]
	if !ok || slices.ContainsFunc(r.missing, func(f v1alpha1.ObjectFailure) bool { return f.Type == services.Kind }) {
		return
	}
	r.missing = append(r.missing, v1alpha1.ObjectFailure{
		Type: services.Kind, Namespace: r.sourceNamespace, Name: "*", Reason: why.Reason,
		Message: fmt.Sprintf("Failed to sync the Services of %s - %s", r.sourceNamespace, why.Message),
	})
}

// addNotCopied records an object that the target lacks, once, and returns its entry.
func (r *report) addNotCopied(kind, name string, reason v1alpha1.NotCopiedReason) *v1alpha1.NotCopiedObject {
	list := &r.notCopied
	at, found := slices.BinarySearchFunc(*list, v1alpha1.NotCopiedObject{Kind: kind, Name: name}, func(a, b v1alpha1.NotCopiedObject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if !found {
		*list = slices.Insert(*list, at, v1alpha1.NotCopiedObject{Kind: kind, Name: name, Reason: reason})
	}
	return &(*list)[at]
}
