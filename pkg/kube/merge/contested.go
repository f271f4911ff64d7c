// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// contested is a field that differs from Desired because others have changed it, or that others own where Desired
// removes it.
type contested struct {
	path fieldpath.Path
	// isWanted is set if Desired changed the field, too.
	isWanted bool
	// added is the enclosing list item that others have added, or that Desired adds to an item that others removed.
	// unwanted is the enclosing item that Desired no longer has, lost the one that others removed. Each is nil if there
	// is none.
	added, unwanted, lost fieldpath.Path
}

// contestedFields returns every contested field.
func (c *comparison) contestedFields() []contested {
	fields := c.changedByOthers()
	for _, p := range pathsOf(c.intent.Added.Leaves()) {
		if c.lost(p) != nil {
			fields.Insert(p)
		}
	}
	for _, p := range c.ownedByOthers() {
		if c.intent.Removed.Has(p) {
			fields.Insert(p)
		}
	}
	var out []contested
	for _, p := range pathsOf(fields) {
		at := contested{path: p, added: c.added(p), unwanted: c.unwanted(p), lost: c.lost(p)}
		at.isWanted = at.unwanted != nil || changed(c.intent, p)
		out = append(out, at)
	}
	return out
}

// changedByOthers returns the fields that others have changed and that differ from Desired.
func (c *comparison) changedByOthers() *fieldpath.Set {
	fields := fieldpath.NewSet()
	for _, p := range pathsOf(c.drift.Added.Union(c.drift.Modified).Leaves()) {
		if !c.isOurs(p) && len(c.others(p)) > 0 && changed(c.pending, p) && !isStatus(p) {
			fields.Insert(p)
		}
	}
	for _, p := range pathsOf(c.drift.Removed.Leaves()) {
		if !c.isOurs(p) && c.pending.Added.Has(p) {
			fields.Insert(p)
		}
	}
	return fields
}

func isStatus(p fieldpath.Path) bool { return p[0].FieldName != nil && *p[0].FieldName == "status" }

// ownedByOthers returns the live fields that others own, except for keys of items that have other fields.
func (c *comparison) ownedByOthers() []fieldpath.Path {
	return slices.DeleteFunc(pathsOf(c.liveFields), func(p fieldpath.Path) bool { return c.isOnlyKey(p) || len(c.others(p)) == 0 })
}

// isOnlyKey reports whether a live field is a key of an item that has other fields, too.
func (c *comparison) isOnlyKey(p fieldpath.Path) bool {
	if !isKey(p) {
		return false
	}
	item := p[:len(p)-1]
	return slices.ContainsFunc(pathsOf(below(c.liveFields, item)), func(rest fieldpath.Path) bool {
		return !isKey(slices.Concat(item, rest))
	})
}

// added returns the enclosing list item that only one side has added.
func (c *comparison) added(p fieldpath.Path) fieldpath.Path {
	if c.lost(p) != nil {
		return itemIn(c.intent.Added, p)
	}
	item := itemIn(c.drift.Added, p)
	if item == nil || !c.pending.Removed.Has(item) {
		return nil
	}
	return item
}

// unwanted returns the enclosing live item that Desired no longer has, or that patches remove.
func (c *comparison) unwanted(p fieldpath.Path) fieldpath.Path {
	item := itemIn(c.pending.Removed, p)
	if item == nil || !c.intent.Removed.Has(item) && !c.patched.Removed.Has(item) {
		return nil
	}
	return item
}

// lost returns the enclosing item that others have removed.
func (c *comparison) lost(p fieldpath.Path) fieldpath.Path {
	item := itemIn(c.drift.Removed, p)
	if item == nil || c.isOurs(item) {
		return nil
	}
	return item
}

// outcome is the result for a contested field.
type outcome int

const (
	survives outcome = iota
	overwritten
	conflicts
)

// policy decides the outcome for a contested field.
type policy func(*comparison, contested) outcome

// desiredWins is the policy of shared environments.
func desiredWins(c *comparison, at contested) outcome {
	if at.isWanted || c.desiredFields.Has(at.path) {
		return overwritten
	}
	return survives
}

// outcome is the policy of branches.
func (r Resolution) outcome(c *comparison, at contested) outcome {
	switch {
	case c.isPatched(at.path) || at.lost != nil && r.restores(c, at.lost):
		return overwritten
	case !at.isWanted || isAt(r.Keep, at.path) || at.unwanted != nil && r.keepsPartOf(at.unwanted):
		return survives
	case isAt(r.Take, at.path):
		return overwritten
	}
	return conflicts
}

// restores reports whether any field in an item that others removed is required. If so, all of the item is restored.
func (r Resolution) restores(c *comparison, item fieldpath.Path) bool {
	for _, rest := range pathsOf(below(c.desiredFields, item)) {
		p := slices.Concat(item, rest)
		if c.isPatched(p) || changed(c.intent, p) && isAt(r.Take, p) && !isAt(r.Keep, p) {
			return true
		}
	}
	return false
}

// keepsPartOf reports whether any field in an item is kept. If so, all of the item is kept.
func (r Resolution) keepsPartOf(item fieldpath.Path) bool {
	path := kubefieldpath.Of(item)
	return slices.ContainsFunc(r.Keep, func(kept kubefieldpath.Path) bool { return kept.BeginsWith(path) })
}

// isPatched reports whether patches set or removed the field.
func (c *comparison) isPatched(p fieldpath.Path) bool {
	return changed(c.patched, p) || itemIn(c.patched.Removed, p) != nil
}

func isAt(paths []kubefieldpath.Path, p fieldpath.Path) bool {
	path := kubefieldpath.Of(p)
	return slices.ContainsFunc(paths, path.BeginsWith)
}
