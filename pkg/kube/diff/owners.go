// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners are the field managers of two objects.
type owners struct{ before, after Managers }

// Managers are the field managers of an object with the fields that they own.
type Managers []manager

type manager struct {
	name   string
	fields *fieldpath.Set
}

// ManagersOf reads managedFields. It skips an entry that cannot be parsed. An entry of another version of the type is
// used by its paths, most of which are the same in all versions.
func ManagersOf(object *unstructured.Unstructured) Managers {
	return managersOf(object, func(string) bool { return true })
}

// FieldsOf returns the fields of an object that one manager owns, as ManagersOf(object).Fields(name) does, at the cost of that manager's
// fields only.
func FieldsOf(object *unstructured.Unstructured, name string) *fieldpath.Set {
	return managersOf(object, func(other string) bool { return other == name }).Fields(name)
}

// managersOf reads the entries of some managers.
func managersOf(object *unstructured.Unstructured, isRead func(name string) bool) Managers {
	var out Managers
	for _, entry := range object.GetManagedFields() {
		fields := fieldpath.NewSet()
		if isRead(entry.Manager) && entry.FieldsV1 != nil && fields.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			out = append(out, manager{entry.Manager, fields})
		}
	}
	return out
}

// Of returns the managers that own a field or a part of it, sorted.
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

// Fields returns the fields that a manager owns.
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
