// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Denied maps types of objects that are not copied from the source to the reason.
type Denied map[v1alpha1.DependencyType]Denial

// Denial is the reason why objects are not copied.
type Denial struct {
	// Reason is a reason of ObjectFailures.
	Reason string
	// Message is a clause that names the user, the missing permission, and how to restore it.
	Message string
}

// Has reports whether objects of a kind are not copied.
func (w Denied) Has(kind schema.GroupKind) bool {
	_, ok := w[v1alpha1.DependencyType(kind.Kind)]
	return ok && kind.Group == ""
}

// Reason returns the reason for conditions. A lost permission takes precedence over one that could not be checked.
func (w Denied) Reason() string {
	for _, why := range w {
		if why.Reason == v1alpha1.ReasonPermissionLost {
			return why.Reason
		}
	}
	return v1alpha1.ReasonUnreachable
}

// Message describes what is not copied from the source, and why.
func (w Denied) Message(source string) string {
	var sentences []string
	for _, of := range w.types() {
		sentences = append(sentences, fmt.Sprintf("%ss of %s are not copied: %s", of, source, w[of].Message))
	}
	return strings.Join(sentences, "; ")
}

// String lists the types without their reasons.
func (w Denied) String() string { return fmt.Sprint(w.types()) }

func (w Denied) types() []v1alpha1.DependencyType { return slices.Sorted(maps.Keys(w)) }

// services need special treatment when they are denied: they are found by their own selectors, and lead to Ingresses and
// their Secrets.
var services = schema.GroupKind{Kind: "Service"}

// lastAppliedServices returns the Services of the base if Services are denied. They are the only source for what else the
// environment must keep.
func (s *Input) lastAppliedServices() []*unstructured.Unstructured {
	if !s.Denied.Has(services) {
		return nil
	}
	var found []*unstructured.Unstructured
	for key, object := range s.Base {
		if key.GroupKind == services {
			found = append(found, object)
		}
	}
	return found
}

// failDenied records that a needed object is not copied. An optional object is only a warning, because it may not exist in
// the source.
func (d *draft) failDenied(key Key, optional bool) {
	why := d.in.Denied[v1alpha1.DependencyType(key.Kind)]
	if optional {
		d.warn(fmt.Sprintf("%s is not copied from %s, if it is there: %s", key, d.in.SourceNamespace, why.Message))
		return
	}
	d.failSource(key, why.Reason, why.Message)
}

// failDeniedServices records that Services are denied if no single Service is known to be needed.
func (d *draft) failDeniedServices() {
	why, ok := d.in.Denied[v1alpha1.DependencyService]
	if !ok || slices.ContainsFunc(d.plan.Missing, func(f v1alpha1.ObjectFailure) bool { return f.Type == services.Kind }) {
		return
	}
	d.plan.Missing = append(d.plan.Missing, v1alpha1.ObjectFailure{
		Type: services.Kind, Namespace: d.in.SourceNamespace, Name: "*", Reason: why.Reason,
		Message: fmt.Sprintf("Failed to sync the Services of %s - %s", d.in.SourceNamespace, why.Message),
	})
}
