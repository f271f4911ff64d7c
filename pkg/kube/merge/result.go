// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// resultBuilder collects the outcomes of contested fields.
type resultBuilder struct {
	Result
	// omitted are desired fields that are not applied. carried are live fields of ours that are applied although
	// Desired does not have them.
	omitted, carried *fieldpath.Set
	// removed are fields to remove. released are items that Desired no longer has and of which nothing survives.
	removed, released *fieldpath.Set
}

func (c *comparison) resolve(policy policy) (Result, error) {
	s := resultBuilder{
		omitted: fieldpath.NewSet(), carried: fieldpath.NewSet(),
		removed: fieldpath.NewSet(), released: fieldpath.NewSet(),
	}
	for _, at := range c.contestedFields() {
		s.add(c, at, policy(c, at))
	}
	s.resolveItems(c)
	for _, p := range pathsOf(s.removed) {
		s.Remove = append(s.Remove, c.field(p))
	}
	for _, list := range []*[]Field{&s.Conflicts, &s.Remove, &s.Survives, &s.Overwritten} {
		*list = sorted(*list)
	}
	if len(s.Conflicts) > 0 {
		return Result{Conflicts: s.Conflicts}, nil
	}
	if s.omitted.Empty() && s.carried.Empty() && s.removed.Empty() {
		s.Touched = touched(c.pending, c.owners.Fields(c.manager), c.withParents)
	}
	var err error
	s.Apply, err = s.applied(c)
	return s.Result, err
}

func (s *resultBuilder) add(c *comparison, at contested, v outcome) {
	isDesired := c.desiredFields.Has(at.path)
	switch v {
	case conflicts:
		s.Conflicts = append(s.Conflicts, c.field(at.whole(v)))
	case survives:
		s.Survives = append(s.Survives, c.field(at.whole(v)))
		if isDesired {
			s.omitted.Insert(at.path)
		}
	case overwritten:
		s.Overwritten = append(s.Overwritten, c.field(at.whole(v)))
		switch {
		case at.unwanted != nil:
			s.released.Insert(at.unwanted)
		case !isDesired:
			s.removed.Insert(at.path)
		}
	}
}

// whole returns the list item that others have added or removed, if the outcome is true of all of it, or the field.
func (at contested) whole(v outcome) fieldpath.Path {
	switch {
	case at.lost != nil && v != conflicts:
		return at.lost
	case at.added != nil:
		return at.added
	}
	return at.path
}

// resolveItems removes items that Desired no longer has and of which nothing survives. If other managers own fields of
// such an item, our manager continues to apply the fields that it owns: without them, the item would be incomplete.
func (s *resultBuilder) resolveItems(c *comparison) {
	whole := fieldpath.NewSet()
	for _, p := range pathsOf(c.liveFields) {
		item := itemIn(c.pending.Removed, p)
		if item == nil || len(c.others(p)) == 0 || !c.isOurs(item) && !s.released.Has(item) {
			continue
		}
		// A manager that owns only the keys blocks the removal of the item, but has no fields to keep.
		s.removed.Insert(item)
		if !c.isOnlyKey(p) && !s.released.Has(item) {
			s.carry(c, item)
			whole.Insert(item)
		}
	}
	s.removed = s.removed.Difference(whole)
}

// carry keeps the fields of an item that only our manager owns.
func (s *resultBuilder) carry(c *comparison, item fieldpath.Path) {
	for _, rest := range pathsOf(below(c.liveFields, item)) {
		if p := slices.Concat(item, rest); c.isOurs(p) && len(c.others(p)) == 0 {
			s.carried.Insert(p)
		}
	}
}

// applied returns Desired without the omitted fields and with the carried ones.
func (s *resultBuilder) applied(c *comparison) (*unstructured.Unstructured, error) {
	out := c.desired.RemoveItems(s.omittedWhole(c))
	if !s.carried.Empty() {
		var err error
		if out, err = out.Merge(c.live.ExtractItems(s.carried, typed.WithAppendKeyFields())); err != nil {
			return nil, errShape
		}
	}
	content, ok := out.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, errShape
	}
	return (&unstructured.Unstructured{Object: content}).DeepCopy(), nil
}

// omittedWhole returns the omitted fields. It replaces fields by the outermost map or item that would be empty without
// them.
func (s *resultBuilder) omittedWhole(c *comparison) *fieldpath.Set {
	left := c.desiredFields.Difference(s.omitted)
	whole := fieldpath.NewSet()
	for _, p := range pathsOf(s.omitted) {
		i := 1
		for i < len(p) && !below(left, p[:i]).Empty() {
			i++
		}
		whole.Insert(p[:i])
	}
	return whole
}

// sorted orders fields by path and removes duplicates.
func sorted(fields []Field) []Field {
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return slices.CompactFunc(fields, func(a, b Field) bool { return a.Path.Equal(b.Path) })
}
