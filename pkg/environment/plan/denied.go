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
