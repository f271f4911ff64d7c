// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Type is the kind of a target.
type Type string

// The types of targets.
const (
	ConfigMap             Type = "ConfigMap"
	PersistentVolumeClaim Type = "PersistentVolumeClaim"
	Secret                Type = "Secret"
	Service               Type = "Service"
	ServiceAccount        Type = "ServiceAccount"
)

// Target is an object that is referred to, in the namespace of the referring object.
type Target struct {
	Type Type
	Name string
}

// Reference is a target with all its referrers.
type Reference struct {
	Target
	// Referrers is not empty and sorted by kind, name and path.
	Referrers []Referrer
}

// Referrer is one field that refers to a target.
type Referrer struct {
	// Kind and Name identify the referring object.
	Kind, Name string
	// Path is the referring field: the one that holds the name, keys and optional where there is such a field, or else
	// the name itself. It does not exist where pods use the account "default" by having no serviceAccountName.
	Path fieldpath.Path
	// Keys are the keys of the target's data that are used, sorted; nil if all can be, or if the target has no data.
	Keys []string
	// Optional is set if pods start without the target or any of the keys.
	Optional bool
}

// Optional reports whether all referrers are optional.
func (r Reference) Optional() bool {
	return !slices.ContainsFunc(r.Referrers, func(r Referrer) bool { return !r.Optional })
}

// Keys returns the keys of the target's data that are used, sorted; nil if all can be, or if the target has no data.
func (r Reference) Keys() []string {
	var keys []string
	for _, referrer := range r.Referrers {
		if referrer.Keys == nil {
			return nil
		}
		keys = append(keys, referrer.Keys...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Merge merges lists of references into one without duplicate targets, sorted by type and name.
func Merge(lists ...[]Reference) []Reference {
	byTarget := map[Target][]Referrer{}
	for _, r := range slices.Concat(lists...) {
		byTarget[r.Target] = append(byTarget[r.Target], r.Referrers...)
	}
	merged := make([]Reference, 0, len(byTarget))
	for target, referrers := range byTarget {
		slices.SortFunc(referrers, compareReferrers)
		merged = append(merged, Reference{target, slices.CompactFunc(referrers, equalReferrers)})
	}
	slices.SortFunc(merged, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	return merged
}

func compareReferrers(a, b Referrer) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), strings.Compare(a.Path.String(), b.Path.String()),
		slices.Compare(a.Keys, b.Keys))
}

func equalReferrers(a, b Referrer) bool {
	return compareReferrers(a, b) == 0 && a.Optional == b.Optional && (a.Keys == nil) == (b.Keys == nil)
}
