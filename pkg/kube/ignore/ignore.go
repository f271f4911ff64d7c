// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignore answers which fields of an object are left out where users say that they do not count: fields that
// they name, and fields that a field manager owns.
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

// Rule names fields of the objects that it is for. Fields and managers together mean the fields as far as one of the
// managers owns them.
type Rule struct {
	// Group, Kind and Name select objects; a nil group and empty names select all.
	Group *string
	Kind  string
	Name  string
	// Fields are pointers as CheckPointer takes them.
	Fields []string
	// Managers are field managers.
	Managers []string
}

// Rules are what several rules leave out. The zero value leaves out nothing.
type Rules struct {
	rules []compiled
}

type compiled struct {
	Rule
	paths []kubefieldpath.Path
}

// Compile reads rules. An error names the pointer that is wrong.
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

// Without returns the object without the fields that do not count. It is the object itself when no rule is for it, and
// else a copy.
func (r Rules) Without(object *unstructured.Unstructured) *unstructured.Unstructured {
	out := object
	for _, rule := range r.rules {
		if !rule.selects(object) {
			continue
		}
		if out == object {
			out = object.DeepCopy()
		}
		rule.apply(out.Object, object.GetManagedFields())
	}
	return out
}

func (c compiled) selects(object *unstructured.Unstructured) bool {
	return (c.Group == nil || *c.Group == object.GroupVersionKind().Group) &&
		(c.Kind == "" || c.Kind == object.GetKind()) && (c.Name == "" || c.Name == object.GetName())
}

func (c compiled) apply(object map[string]any, entries []metav1.ManagedFieldsEntry) {
	if len(c.Managers) == 0 {
		for _, p := range c.paths {
			remove(object, p)
		}
		return
	}
	for _, owned := range c.owned(entries) {
		switch {
		case isIdentity(owned.path) || owned.isKey() || !c.names(owned.path):
		case owned.leaf:
			remove(object, c.within(owned.path))
		default:
			removeHollow(object, owned.path)
		}
	}
}

// ownedPath is a field that a manager owns.
type ownedPath struct {
	path kubefieldpath.Path
	// leaf says that nothing below it has an owner of its own.
	leaf bool
}

// isKey says whether the field is a key of a list's item, which is an item no more without it.
func (o ownedPath) isKey() bool {
	last := len(o.path) - 1
	return last > 0 && slices.ContainsFunc(o.path[last-1].Keys, func(k kubefieldpath.Key) bool { return k.Name == o.path[last].Field })
}

// owned returns the fields of the managers, those further down first.
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

// names says whether the rule is about a field: it names none, or this one, or one above or below it.
func (c compiled) names(p kubefieldpath.Path) bool {
	return len(c.paths) == 0 || slices.ContainsFunc(c.paths, func(named kubefieldpath.Path) bool { return p.BeginsWith(named) || named.BeginsWith(p) })
}

// within returns the field to leave out of one that is owned as a whole: itself, or the one below it that is named.
func (c compiled) within(p kubefieldpath.Path) kubefieldpath.Path {
	if i := slices.IndexFunc(c.paths, func(named kubefieldpath.Path) bool { return named.BeginsWith(p) }); i >= 0 {
		return c.paths[i]
	}
	return p
}

// removeHollow takes out what has nothing left but the keys that it is found by.
func removeHollow(object map[string]any, p kubefieldpath.Path) {
	if found, ok := p.Lookup(object); ok && isHollow(found, p[len(p)-1].Keys) {
		remove(object, p)
	}
}
