// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// definitions is the type of CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Selection is what a pipeline selects.
type Selection struct {
	// Definitions selects CustomResourceDefinitions, Instances other objects; nil selects none.
	Definitions *DefinitionFilter
	Instances   *InstanceFilter
	// Poll disables watches: the state is listed when the pipeline starts, and by Observer.List.
	Poll bool
}

// DefinitionFilter selects CustomResourceDefinitions by name.
type DefinitionFilter struct {
	// Include and Exclude are names in which * matches any characters, including dots. An empty Include selects all.
	Include, Exclude []string
}

func (f *DefinitionFilter) matches(name string) bool {
	return (len(f.Include) == 0 || matchesAny(f.Include, name)) && !matchesAny(f.Exclude, name)
}

// matchesAny uses path patterns, which works because names of definitions contain no slash.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return matched && err == nil
	})
}

// InstanceFilter selects types.
type InstanceFilter struct {
	// Resources are those of a watch.Selection. Empty selects all.
	Resources []string
	// Exclude are plurals, in every group, and plural.group. It takes precedence over Resources.
	Exclude []string
}

func (f *InstanceFilter) excludes(resource schema.GroupResource) bool {
	return slices.ContainsFunc(f.Exclude, func(entry string) bool {
		plural, group, grouped := strings.Cut(entry, ".")
		return plural == resource.Resource && (!grouped || group == resource.Group)
	})
}

// types returns the selected types, each in its preferred version. Of types with the same kind, whose objects could not be distinguished,
// it returns the first.
func (f *InstanceFilter) types(snapshot *watch.Snapshot) []watch.Type {
	chosen, _ := snapshot.Resolve(watch.Selection{Resources: f.Resources}, watch.Policy{})
	taken := map[schema.GroupVersionKind]bool{}
	return slices.DeleteFunc(chosen, func(t watch.Type) bool {
		kind := t.Resource.GroupVersion().WithKind(t.Kind)
		if f.excludes(t.Resource.GroupResource()) || taken[kind] {
			return true
		}
		taken[kind] = true
		return false
	})
}

// feedID identifies a feed.
type feedID struct {
	kind     item.Kind
	resource schema.GroupVersionResource
}

// String returns the type, for logs.
func (id feedID) String() string { return id.resource.GroupResource().String() }

// want is how a pipeline selects the objects of a feed.
type want struct {
	// gvk is the kind of instances.
	gvk schema.GroupVersionKind
	// filter selects definitions.
	filter *DefinitionFilter
	poll   bool
}

// wants returns the feeds that a selection needs, none while the types are unknown.
func (s *Selection) wants(snapshot *watch.Snapshot) map[feedID]want {
	wants := map[feedID]want{}
	if snapshot == nil {
		return wants
	}
	if s.Definitions != nil {
		wants[feedID{item.CustomResourceDefinition, definitions}] = want{filter: s.Definitions, poll: s.Poll}
	}
	if s.Instances != nil {
		for _, t := range s.Instances.types(snapshot) {
			wants[feedID{item.Instance, t.Resource}] = want{gvk: t.Resource.GroupVersion().WithKind(t.Kind), poll: s.Poll}
		}
	}
	return wants
}

// keeps returns a function that reports whether objects of a type can exist: of the wanted types, and of groups whose discovery failed.
func (s *Selection) keeps(snapshot *watch.Snapshot, wants map[feedID]want) func(item.Kind, string, string) bool {
	wanted := map[schema.GroupVersionKind]bool{}
	for _, w := range wants {
		wanted[w.gvk] = true
	}
	return func(kind item.Kind, apiVersion, objectKind string) bool {
		if kind == item.CustomResourceDefinition {
			return s.Definitions != nil
		}
		gvk := schema.FromAPIVersionAndKind(apiVersion, objectKind)
		return wanted[gvk] || s.Instances != nil && snapshot.GroupFailed(gvk.Group)
	}
}
