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

// Selection is what a pipeline tells of.
type Selection struct {
	// Definitions chooses CustomResourceDefinitions, Instances other objects; nil: none.
	Definitions *DefinitionFilter
	Instances   *InstanceFilter
	// Poll leaves watches out: what there is is found out when the pipeline begins, and by Observer.List.
	Poll bool
}

// DefinitionFilter chooses CustomResourceDefinitions by their names.
type DefinitionFilter struct {
	// Include and Exclude are names in which * stands for any characters, dots too. An empty Include means all.
	Include, Exclude []string
}

func (f *DefinitionFilter) matches(name string) bool {
	return (len(f.Include) == 0 || matchesAny(f.Include, name)) && !matchesAny(f.Exclude, name)
}

// matchesAny takes no slash for a part of a name, which names of definitions do not have.
func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return matched && err == nil
	})
}

// InstanceFilter chooses types.
type InstanceFilter struct {
	// Resources are those of a source.Selection. Empty means all.
	Resources []string
	// Exclude are plurals, in every group, and plural.group. They are left out although they are chosen.
	Exclude []string
}

func (f *InstanceFilter) excludes(resource schema.GroupResource) bool {
	return slices.ContainsFunc(f.Exclude, func(entry string) bool {
		plural, group, grouped := strings.Cut(entry, ".")
		return plural == resource.Resource && (!grouped || group == resource.Group)
	})
}

// types are those chosen, each in its preferred version. Where two of them say that their objects are of the same kind, which nobody
// could tell apart, it is the first.
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

// feedID names a feed.
type feedID struct {
	kind     item.Kind
	resource schema.GroupVersionResource
}

// want is how a pipeline wants the objects of a feed.
type want struct {
	// gvk is that of instances.
	gvk schema.GroupVersionKind
	// filter is for definitions.
	filter *DefinitionFilter
	poll   bool
}

// wants says which feeds a selection needs, and how.
func (s *Selection) wants(snapshot *watch.Snapshot) map[feedID]want {
	wants := map[feedID]want{}
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

// keeps says of which types there may be objects: of those wanted, and of groups that discovery could not ask for.
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
