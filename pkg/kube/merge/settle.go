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

// settlement is what verdicts add up to.
type settlement struct {
	Result
	// omitted are desired fields that are not applied; carried are live fields of ours that are, although not desired.
	omitted, carried *fieldpath.Set
	// removed are fields that go, released items that are not wanted any more and of which nothing survives.
	removed, released *fieldpath.Set
}

func (c *comparison) settle(judge judge) (Result, error) {
	s := settlement{
		omitted: fieldpath.NewSet(), carried: fieldpath.NewSet(),
		removed: fieldpath.NewSet(), released: fieldpath.NewSet(),
	}
	for _, at := range c.contests() {
		s.add(c, at, judge(c, at))
	}
	s.settleItems(c)
	for _, p := range pathsOf(s.removed) {
		s.Remove = append(s.Remove, c.field(p))
	}
	for _, list := range []*[]Field{&s.Conflicts, &s.Remove, &s.Survives, &s.Overwritten} {
		*list = sorted(*list)
	}
	if len(s.Conflicts) > 0 {
		return Result{Conflicts: s.Conflicts}, nil
	}
	var err error
	s.Apply, err = s.applied(c)
	return s.Result, err
}

func (s *settlement) add(c *comparison, at contest, v verdict) {
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
		case at.dropped != nil:
			s.released.Insert(at.dropped)
		case !isDesired:
			s.removed.Insert(at.path)
		}
	}
}

// whole is the item that others have added, or removed if that may be said of all of it, or the field.
func (at contest) whole(v verdict) fieldpath.Path {
	switch {
	case at.gone != nil && v != conflicts:
		return at.gone
	case at.added != nil:
		return at.added
	}
	return at.path
}

// settleItems removes items that are not wanted any more and of which nothing survives. Of others in which somebody else has
// fields, our manager goes on applying what it has applied: without it, they would not be whole.
func (s *settlement) settleItems(c *comparison) {
	whole := fieldpath.NewSet()
	for _, p := range pathsOf(c.liveFields) {
		item := itemIn(c.apart.Removed, p)
		if item == nil || len(c.others(p)) == 0 || !c.isOurs(item) && !s.released.Has(item) {
			continue
		}
		// Who owns nothing but keys keeps an item from going, and has nothing of it.
		s.removed.Insert(item)
		if !c.isMereKey(p) && !s.released.Has(item) {
			s.carry(c, item)
			whole.Insert(item)
		}
	}
	s.removed = s.removed.Difference(whole)
}

// carry keeps what nobody but our manager owns of an item.
func (s *settlement) carry(c *comparison, item fieldpath.Path) {
	for _, rest := range pathsOf(below(c.liveFields, item)) {
		if p := slices.Concat(item, rest); c.isOurs(p) && len(c.others(p)) == 0 {
			s.carried.Insert(p)
		}
	}
}

// applied is what is desired without what is omitted, with what is carried along.
func (s *settlement) applied(c *comparison) (*unstructured.Unstructured, error) {
	out := c.desired.RemoveItems(s.wholly(c))
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

// wholly returns what is omitted, and in the place of fields the outermost of what would be empty without them.
func (s *settlement) wholly(c *comparison) *fieldpath.Set {
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

// sorted orders fields by path, each once.
func sorted(fields []Field) []Field {
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return slices.CompactFunc(fields, func(a, b Field) bool { return a.Path.Equal(b.Path) })
}
