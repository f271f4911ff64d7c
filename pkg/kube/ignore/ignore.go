// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignore removes ignored fields from objects: fields that users list, and fields that given field managers own.
package ignore

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Rule lists ignored fields of the objects that it selects. With both fields and managers, it means the fields as far
// as one of the managers owns them.
type Rule struct {
	// Group, Kind and Name select objects; a nil group and empty names select all.
	Group *string
	Kind  string
	Name  string
	// Fields are paths that CheckPointer accepts.
	Fields []string
	// Managers are field managers.
	Managers []string
}

// Rules is a compiled list of rules. The zero value ignores nothing.
type Rules struct {
	rules []compiled
}

type compiled struct {
	Rule
	paths []kubefieldpath.Path
}

// Compile compiles rules. An error quotes the invalid path.
func Compile(rules []Rule) (Rules, error) {
	var out Rules
	for _, rule := range rules {
		c := compiled{Rule: rule}
		for _, pointer := range rule.Fields {
			p, err := parsePointer(pointer)
			if err != nil {
				return Rules{}, fmt.Errorf("%q %w", pointer, err)
			}
			c.paths = append(c.paths, p)
		}
		out.rules = append(out.rules, c)
	}
	return out, nil
}

// Without returns the object without its ignored fields: the object itself if no rule selects it, and a copy otherwise.
func (r Rules) Without(object *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := r.Split(object)
	return out
}

// Field is a field that was removed from an object.
type Field struct {
	Path  kubefieldpath.Path
	Value any
}

// Split returns the object as Without does, and its ignored fields in the order in which they were removed. A field's value lacks
// what was removed from it before.
func (r Rules) Split(object *unstructured.Unstructured) (*unstructured.Unstructured, []Field) {
	out := object
	var removed []Field
	for _, rule := range r.rules {
		if !rule.selects(object) {
			continue
		}
		if out == object {
			out = object.DeepCopy()
		}
		removed = append(removed, rule.apply(out.Object, object.GetManagedFields())...)
	}
	return out, removed
}

func (c compiled) selects(object *unstructured.Unstructured) bool {
	return (c.Group == nil || *c.Group == object.GroupVersionKind().Group) &&
		(c.Kind == "" || c.Kind == object.GetKind()) && (c.Name == "" || c.Name == object.GetName())
}

// apply removes the ignored fields, and returns them.
func (c compiled) apply(object map[string]any, entries []metav1.ManagedFieldsEntry) (removed []Field) {
	take := func(p kubefieldpath.Path) {
		if value, exists := p.Lookup(object); exists {
			removed = append(removed, Field{p, value})
			remove(object, p)
		}
	}
	if len(c.Managers) == 0 {
		for _, p := range c.paths {
			take(p)
		}
		return removed
	}
	for _, owned := range c.owned(entries) {
		switch {
		case isIdentity(owned.path) || owned.isKey() || !c.names(owned.path):
		case owned.leaf:
			take(c.within(owned.path))
		case hasOnlyKeys(object, owned.path):
			take(owned.path)
		}
	}
	return removed
}

// ownedPath is a field that a manager owns.
type ownedPath struct {
	path kubefieldpath.Path
	// leaf is set if no field below it has an owner.
	leaf bool
}

// isKey reports whether the field is a key of a list item. Without its key, the item is invalid.
func (o ownedPath) isKey() bool {
	last := len(o.path) - 1
	return last > 0 && slices.ContainsFunc(o.path[last-1].Keys, func(k kubefieldpath.Key) bool { return k.Name == o.path[last].Field })
}

// owned returns the fields that the rule's managers own, deepest first.
func (c compiled) owned(entries []metav1.ManagedFieldsEntry) []ownedPath {
	owned := fieldpath.NewSet()
	for _, entry := range entries {
		if entry.FieldsV1 == nil || !slices.Contains(c.Managers, entry.Manager) {
			continue
		}
		set := fieldpath.NewSet()
		if set.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			owned = owned.Union(set)
		}
	}
	var paths []ownedPath
	leaves := owned.Leaves()
	owned.Iterate(func(p fieldpath.Path) {
		paths = append(paths, ownedPath{path: kubefieldpath.Of(p), leaf: leaves.Has(p)})
	})
	slices.SortStableFunc(paths, func(a, b ownedPath) int { return cmp.Compare(len(b.path), len(a.path)) })
	return paths
}

// names reports whether the rule covers a field: the rule lists no fields, or this one, or one above or below it.
func (c compiled) names(p kubefieldpath.Path) bool {
	return len(c.paths) == 0 || slices.ContainsFunc(c.paths, func(named kubefieldpath.Path) bool {
		return p.BeginsWith(named) || named.BeginsWith(p)
	})
}

// within returns the field to remove for one that is owned as a whole: the listed field at or below it, if any, or
// itself.
func (c compiled) within(p kubefieldpath.Path) kubefieldpath.Path {
	if i := slices.IndexFunc(c.paths, func(named kubefieldpath.Path) bool { return named.BeginsWith(p) }); i >= 0 {
		return c.paths[i]
	}
	return p
}

// hasOnlyKeys reports whether a field or item has no content except its keys.
func hasOnlyKeys(object map[string]any, p kubefieldpath.Path) bool {
	found, ok := p.Lookup(object)
	return ok && isEmpty(found, p[len(p)-1].Keys)
}
