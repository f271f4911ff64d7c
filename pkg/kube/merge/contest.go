// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// contest is a field that is not as desired because others have changed it, or hold it where it is to go.
type contest struct {
	path fieldpath.Path
	// isWanted says that what is wanted there has changed, too.
	isWanted bool
	// added is the item of a list with the field in it that others have added, or that is to be added to what they have removed;
	// dropped is the one that is not wanted any more, gone the one that others have removed; nil if there is none.
	added, dropped, gone fieldpath.Path
}

// contests returns every contest.
func (c *comparison) contests() []contest {
	fields := c.changedByOthers()
	for _, p := range pathsOf(c.wish.Added.Leaves()) {
		if c.gone(p) != nil {
			fields.Insert(p)
		}
	}
	for _, p := range c.theirs() {
		if c.wish.Removed.Has(p) {
			fields.Insert(p)
		}
	}
	var out []contest
	for _, p := range pathsOf(fields) {
		at := contest{path: p, added: c.added(p), dropped: c.dropped(p), gone: c.gone(p)}
		at.isWanted = at.dropped != nil || changed(c.wish, p)
		out = append(out, at)
	}
	return out
}

// changedByOthers returns the fields that others have changed and that are not as desired.
func (c *comparison) changedByOthers() *fieldpath.Set {
	fields := fieldpath.NewSet()
	for _, p := range pathsOf(c.drift.Added.Union(c.drift.Modified).Leaves()) {
		if !c.isOurs(p) && len(c.others(p)) > 0 && changed(c.apart, p) && !isStatus(p) {
			fields.Insert(p)
		}
	}
	for _, p := range pathsOf(c.drift.Removed.Leaves()) {
		if !c.isOurs(p) && c.apart.Added.Has(p) {
			fields.Insert(p)
		}
	}
	return fields
}

func isStatus(p fieldpath.Path) bool { return p[0].FieldName != nil && *p[0].FieldName == "status" }

// theirs returns the live fields that others own, less keys of items that are more than their keys.
func (c *comparison) theirs() []fieldpath.Path {
	return slices.DeleteFunc(pathsOf(c.liveFields), func(p fieldpath.Path) bool { return c.isMereKey(p) || len(c.others(p)) == 0 })
}

// isMereKey says whether a live field is a key of an item that has other fields, too.
func (c *comparison) isMereKey(p fieldpath.Path) bool {
	if !isKey(p) {
		return false
	}
	item := p[:len(p)-1]
	return slices.ContainsFunc(pathsOf(below(c.liveFields, item)), func(rest fieldpath.Path) bool {
		return !isKey(slices.Concat(item, rest))
	})
}

// added returns the item that a field is in and that only one side has added.
func (c *comparison) added(p fieldpath.Path) fieldpath.Path {
	if c.gone(p) != nil {
		return itemIn(c.wish.Added, p)
	}
	item := itemIn(c.drift.Added, p)
	if item == nil || !c.apart.Removed.Has(item) {
		return nil
	}
	return item
}

// dropped returns the live item that a field is in and that is not wanted any more, or that patches take out.
func (c *comparison) dropped(p fieldpath.Path) fieldpath.Path {
	item := itemIn(c.apart.Removed, p)
	if item == nil || !c.wish.Removed.Has(item) && !c.declared.Removed.Has(item) {
		return nil
	}
	return item
}

// gone returns the item that a field is in and that others have removed.
func (c *comparison) gone(p fieldpath.Path) fieldpath.Path {
	item := itemIn(c.drift.Removed, p)
	if item == nil || c.isOurs(item) {
		return nil
	}
	return item
}

// verdict is what becomes of a contest.
type verdict int

const (
	survives verdict = iota
	overwritten
	conflicts
)

type judge func(*comparison, contest) verdict

// wins is how contests end where what is desired wins.
func wins(c *comparison, at contest) verdict {
	if at.isWanted || c.desiredFields.Has(at.path) {
		return overwritten
	}
	return survives
}

// verdict is how contests of branches end.
func (r Resolution) verdict(c *comparison, at contest) verdict {
	switch {
	case c.isDeclared(at.path) || at.gone != nil && r.restores(c, at.gone):
		return overwritten
	case !at.isWanted || isAt(r.Keep, at.path) || at.dropped != nil && r.holds(at.dropped):
		return survives
	case isAt(r.Take, at.path):
		return overwritten
	}
	return conflicts
}

// restores says whether something in an item that others have removed is to be there: then all of it is.
func (r Resolution) restores(c *comparison, item fieldpath.Path) bool {
	for _, rest := range pathsOf(below(c.desiredFields, item)) {
		p := slices.Concat(item, rest)
		if c.isDeclared(p) || changed(c.wish, p) && isAt(r.Take, p) && !isAt(r.Keep, p) {
			return true
		}
	}
	return false
}

// holds says whether something in an item is kept: then all of it is.
func (r Resolution) holds(item fieldpath.Path) bool {
	path := kubefieldpath.Of(item)
	return slices.ContainsFunc(r.Keep, func(kept kubefieldpath.Path) bool { return kept.BeginsWith(path) })
}

// isDeclared says whether patches made the field what is desired.
func (c *comparison) isDeclared(p fieldpath.Path) bool {
	return changed(c.declared, p) || itemIn(c.declared.Removed, p) != nil
}

func isAt(paths []kubefieldpath.Path, p fieldpath.Path) bool {
	path := kubefieldpath.Of(p)
	return slices.ContainsFunc(paths, path.BeginsWith)
}
