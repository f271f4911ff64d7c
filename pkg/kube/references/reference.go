// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Type is the kind of an object that is referred to.
type Type string

// The types that are referred to by name.
const (
	ConfigMap             Type = "ConfigMap"
	PersistentVolumeClaim Type = "PersistentVolumeClaim"
	Secret                Type = "Secret"
	Service               Type = "Service"
	ServiceAccount        Type = "ServiceAccount"
)

// Target is what is referred to, in the namespace of what refers to it.
type Target struct {
	Type Type
	Name string
}

// Reference is a target with everything that refers to it.
type Reference struct {
	Target
	// Referrers are not empty. They are sorted by kind, name and path.
	Referrers []Referrer
}

// Referrer is one place that refers to a target.
type Referrer struct {
	// Kind and Name are those of the object that refers.
	Kind, Name string
	// Path is the field that refers: the one that holds the name, keys and optional where there is such a one, else the name
	// itself. It leads nowhere where pods have no serviceAccountName, which means the account "default".
	Path fieldpath.Path
	// Keys are those of the target's data that are read, sorted; nil if it may be all, or if the target has no data.
	Keys []string
	// Optional says that pods start without the target, and without any of the keys.
	Optional bool
}

// Optional says whether everything that refers to the target does without it.
func (r Reference) Optional() bool {
	return !slices.ContainsFunc(r.Referrers, func(r Referrer) bool { return !r.Optional })
}

// Keys returns those of the target's data that are read, sorted; nil if it may be all, or if the target has no data.
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

// Merge puts lists of references together into one in which each target is once. It is sorted by type and name.
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
