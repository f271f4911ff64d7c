// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners are the managers of two objects' fields.
type owners struct{ before, after Managers }

// Managers are the field managers of an object: what each entry of its managedFields says.
type Managers []manager

type manager struct {
	name   string
	fields *fieldpath.Set
}

// ManagersOf reads managedFields. An entry that cannot be read tells of nothing; one of another version of the type is
// taken by its paths, which versions mostly share.
func ManagersOf(object *unstructured.Unstructured) Managers {
	var out Managers
	for _, entry := range object.GetManagedFields() {
		fields := fieldpath.NewSet()
		if entry.FieldsV1 != nil && fields.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			out = append(out, manager{entry.Manager, fields})
		}
	}
	return out
}

// Of returns the managers that own a field or something in it, sorted.
func (m Managers) Of(p fieldpath.Path) []string {
	var names []string
	for _, one := range m {
		if owns(one.fields, p) {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Fields returns what a manager owns.
func (m Managers) Fields(name string) *fieldpath.Set {
	owned := fieldpath.NewSet()
	for _, one := range m {
		if one.name == name {
			owned = owned.Union(one.fields)
		}
	}
	return owned
}

func owns(fields *fieldpath.Set, p fieldpath.Path) bool {
	last := len(p) - 1
	for _, element := range p[:last] {
		below, ok := fields.Children.Get(element)
		if !ok {
			return false
		}
		fields = below
	}
	_, part := fields.Children.Get(p[last])
	return part || fields.Members.Has(p[last])
}
