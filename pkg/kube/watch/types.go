// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Type is one resource type in one version.
type Type struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Preferred is set for the one version of this group and resource that is watched if none is named: the preferred
	// version of the group if it has the resource, otherwise the first that has it.
	Preferred bool
	// Watchable is set if objects can be listed and watched.
	Watchable bool
	// Stale is set if the type was discovered earlier, and the last discovery failed for it.
	Stale bool
}

// Snapshot is the result of one discovery. It is immutable.
type Snapshot struct {
	types  []Type
	failed map[schema.GroupVersion]string
}

// NewSnapshot returns a snapshot of types. failed has the error of each group version whose discovery failed.
func NewSnapshot(types []Type, failed map[schema.GroupVersion]string) *Snapshot {
	types = slices.Clone(types)
	slices.SortFunc(types, compareTypes)
	return &Snapshot{types: types, failed: maps.Clone(failed)}
}

// compareTypes orders by group, resource, and then the preferred version first.
func compareTypes(a, b Type) int {
	if c := cmp.Or(
		cmp.Compare(a.Resource.Group, b.Resource.Group),
		cmp.Compare(a.Resource.Resource, b.Resource.Resource),
	); c != 0 {
		return c
	}
	if a.Preferred != b.Preferred {
		if a.Preferred {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Resource.Version, b.Resource.Version)
}

// GroupFailed reports whether discovery failed for any version of the group. Types of this group that are not in the snapshot
// may exist, so nothing may be deleted because they are missing. Types that were discovered earlier are in the snapshot and
// Stale.
func (s *Snapshot) GroupFailed(group string) bool {
	for failed := range s.failed {
		if failed.Group == group {
			return true
		}
	}
	return false
}

// equal compares snapshots without the messages of failures, which consumers do not use.
func (s *Snapshot) equal(other *Snapshot) bool {
	if other == nil || !slices.Equal(s.types, other.types) || len(s.failed) != len(other.failed) {
		return false
	}
	for failed := range s.failed {
		if _, ok := other.failed[failed]; !ok {
			return false
		}
	}
	return true
}

// servedTypes returns the types in the result of discovery, without subresources.
func servedTypes(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []Type {
	resources := map[schema.GroupVersion][]metav1.APIResource{}
	for _, list := range lists {
		// A group version that cannot be parsed cannot be requested.
		if groupVersion, err := schema.ParseGroupVersion(list.GroupVersion); err == nil {
			resources[groupVersion] = list.APIResources
		}
	}
	var types []Type
	for _, group := range groups {
		seen := map[string]bool{}
		for _, version := range versionsByPreference(group) {
			groupVersion := schema.GroupVersion{Group: group.Name, Version: version}
			for _, resource := range resources[groupVersion] {
				if strings.Contains(resource.Name, "/") {
					continue
				}
				types = append(types, Type{
					Resource:   groupVersion.WithResource(resource.Name),
					Kind:       resource.Kind,
					Namespaced: resource.Namespaced,
					Preferred:  !seen[resource.Name],
					Watchable:  slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "watch"),
				})
				seen[resource.Name] = true
			}
		}
	}
	return types
}

func versionsByPreference(group *metav1.APIGroup) []string {
	versions := make([]string, 0, len(group.Versions)+1)
	if preferred := group.PreferredVersion.Version; preferred != "" {
		versions = append(versions, preferred)
	}
	for _, version := range group.Versions {
		if version.Version != group.PreferredVersion.Version {
			versions = append(versions, version.Version)
		}
	}
	return versions
}

// merge returns the snapshot that follows previous, which may be nil. Types of a group version that failed are kept and
// Stale. So are types that discovery left out although they are still declared: a server that is starting may list fewer
// types than it serves. Their group version counts as failed.
func merge(previous *Snapshot, served []Type, failed map[schema.GroupVersion]string, declared func(Type) bool) *Snapshot {
	types, failed := slices.Clone(served), maps.Clone(failed)
	if failed == nil {
		failed = map[schema.GroupVersion]string{}
	}
	known := make(map[schema.GroupVersionResource]bool, len(served))
	otherVersion := make(map[schema.GroupResource]bool, len(served))
	for _, t := range served {
		known[t.Resource] = true
		otherVersion[t.Resource.GroupResource()] = true
	}
	for _, t := range previousTypes(previous) {
		groupVersion := t.Resource.GroupVersion()
		_, unavailable := failed[groupVersion]
		if known[t.Resource] || !unavailable && (otherVersion[t.Resource.GroupResource()] || !declared(t)) {
			continue
		}
		if !unavailable {
			failed[groupVersion] = "discovery left out " + t.Resource.Resource + ", which is still installed"
		}
		t.Stale = true
		types = append(types, t)
	}
	return NewSnapshot(withOnePreferred(types), failed)
}

func previousTypes(previous *Snapshot) []Type {
	if previous == nil {
		return nil
	}
	return previous.types
}

// withOnePreferred keeps a stale version preferred if it was: a failed discovery must not move the watches of the type to
// another version.
func withOnePreferred(types []Type) []Type {
	stale := map[schema.GroupResource]bool{}
	for _, t := range types {
		if t.Stale && t.Preferred {
			stale[t.Resource.GroupResource()] = true
		}
	}
	for i := range types {
		if !types[i].Stale && stale[types[i].Resource.GroupResource()] {
			types[i].Preferred = false
		}
	}
	return types
}
