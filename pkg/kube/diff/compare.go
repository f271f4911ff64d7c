// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff computes which fields differ between two objects of one type, and which managers own them.
//
// Schemas identify list items by their keys at any depth: a container by its name, a port by its number and protocol. A
// list whose schema has no keys is one field. Values are equal if they are written alike: a CPU of 1000m differs from
// 1, an absent field differs from its default, and null differs from absent. Only numbers are compared by value, so
// that 1 equals 1.0.
package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Change is the kind of a difference.
type Change string

const (
	// Added is a field that exists only after.
	Added Change = "Added"
	// Removed is a field that exists only before.
	Removed Change = "Removed"
	// Changed is a field with another value after.
	Changed Change = "Changed"
)

// Difference is a field that differs: a value, a list without keys, or an empty list or map.
type Difference struct {
	Path kubefieldpath.Path
	// Whole is the outermost list item or map that was added or removed with the field, or the field itself.
	Whole  kubefieldpath.Path
	Change Change
	// Before and After are the field managers that own the field or a part of it, sorted, by the managedFields of the
	// respective object.
	Before, After []string
}

// ValueIn returns the value of the field in an object as JSON; nil if there is none, or no object.
func (d Difference) ValueIn(object *unstructured.Unstructured) *string {
	if object == nil {
		return nil
	}
	value, exists := d.Path.Lookup(object.Object)
	if !exists {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return new(string(text))
}

// serverManaged are the fields that the API server maintains. They have no managers and are not compared.
var serverManaged = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"), fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// Compare returns the differences sorted by path, except for the fields that the API server maintains, such as uid and
// resourceVersion. The names may differ, so that an object can be compared with its copy in another namespace.
func (s *Schemas) Compare(ctx context.Context, before, after *unstructured.Unstructured) ([]Difference, error) {
	both, err := s.Typed(ctx, before, after)
	if err != nil {
		return nil, err
	}
	comparison, err := both[0].Compare(both[1])
	if err != nil {
		return nil, errShape(before)
	}
	owners := owners{before: ManagersOf(before), after: ManagersOf(after)}
	out := slices.Concat(
		owners.differences(Added, comparison.Added), owners.differences(Removed, comparison.Removed),
		owners.differences(Changed, comparison.Modified))
	return sorted(out), nil
}

// sorted orders differences by path and formats each path once.
func sorted(differences []Difference) []Difference {
	byPath := make(map[string][]Difference, len(differences))
	for _, d := range differences {
		path := d.Path.String()
		byPath[path] = append(byPath[path], d)
	}
	out := differences[:0]
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		out = append(out, byPath[path]...)
	}
	return out
}

// errShape returns an error for an object that does not fit its type. It does not wrap the library's errors, which
// quote values that may be secret.
func errShape(object *unstructured.Unstructured) error {
	return fmt.Errorf("compare %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
}

// differences returns the leaves of the changed fields.
func (o owners) differences(change Change, fields *fieldpath.Set) []Difference {
	var out []Difference
	for p := range fields.Leaves().All() {
		if serverManaged.Has(p) {
			continue
		}
		path := kubefieldpath.Of(p)
		out = append(out, Difference{
			Path: path, Whole: path[:wholeLength(fields, p)], Change: change, Before: o.before.Of(p), After: o.after.Of(p),
		})
	}
	return out
}

// wholeLength returns the length of the prefix of p that was added or removed as a whole.
func wholeLength(fields *fieldpath.Set, p fieldpath.Path) int {
	for i := 1; i < len(p); i++ {
		if fields.Has(p[:i]) {
			return i
		}
	}
	return len(p)
}
