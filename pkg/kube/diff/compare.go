// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff answers which fields differ between two objects of one type, and whose they are.
//
// Types have schemas, and by them items of lists are found by their keys, wherever they are: a container by its name, a
// port by its number and protocol. A list whose schema names no keys is one field. Values are equal if they are written
// alike: a CPU of 1000m is not one of 1, a field that is absent is not its default, and null is not absent; only numbers
// count by what they are, so that 1 is 1.0.
package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Change is what has become of a field.
type Change string

const (
	// Added is a field that was not there before.
	Added Change = "Added"
	// Removed is a field that is not there after.
	Removed Change = "Removed"
	// Changed is a field that has another value after.
	Changed Change = "Changed"
)

// Difference is a field that differs: a value, a list that is one field, or an empty list or map.
type Difference struct {
	Path kubefieldpath.Path
	// Whole is what was added or removed with the field: the item of a list or the map that it is in, or the field itself.
	Whole  kubefieldpath.Path
	Change Change
	// Before and After are the field managers that own the field, or part of it, by the managedFields of the object before and
	// of the one after, sorted. An object without managedFields tells of none.
	Before, After []string
}

// kept are the fields that the API server keeps for itself. No manager owns them, and they tell of no change.
var kept = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
	fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
	fieldpath.MakePathOrDie("metadata", "creationTimestamp"), fieldpath.MakePathOrDie("metadata", "selfLink"),
	fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "generation"),
	fieldpath.MakePathOrDie("metadata", "managedFields"), fieldpath.MakePathOrDie("metadata", "resourceVersion"),
)

// Compare returns what differs, sorted by path, less what the API server keeps for itself: names, uid, resourceVersion and
// the like. The names may differ, so that an object can be compared with its copy in another namespace.
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
		owners.differences(Added, comparison.Added), owners.differences(Removed, comparison.Removed), owners.differences(Changed, comparison.Modified))
	return sorted(out), nil
}

// sorted orders differences by their paths, each of which is written once.
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

// errShape says that an object could not be read. The library's errors quote values, which may be secret.
func errShape(object *unstructured.Unstructured) error {
	return fmt.Errorf("compare %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
}

// differences are the leaves of what was added, removed or changed.
func (o owners) differences(change Change, fields *fieldpath.Set) []Difference {
	var out []Difference
	for p := range fields.Leaves().All() {
		if kept.Has(p) {
			continue
		}
		path := kubefieldpath.Of(p)
		out = append(out, Difference{
			Path: path, Whole: path[:wholeLength(fields, p)], Change: change, Before: o.before.Of(p), After: o.after.Of(p),
		})
	}
	return out
}

// wholeLength is how much of a path leads to what was added or removed with it.
func wholeLength(fields *fieldpath.Set, p fieldpath.Path) int {
	for i := 1; i < len(p); i++ {
		if fields.Has(p[:i]) {
			return i
		}
	}
	return len(p)
}
