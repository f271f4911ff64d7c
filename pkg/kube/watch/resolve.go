// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope restricts a selection to types of one scope.
type Scope string

const (
	// AnyScope selects both scopes. It is the zero value.
	AnyScope Scope = ""
	// ClusterScope selects types whose objects have no namespace.
	ClusterScope Scope = "Cluster"
	// NamespacedScope selects types whose objects have a namespace.
	NamespacedScope Scope = "Namespaced"
)

// all is the wildcard of admission rules.
const all = "*"

// Selection selects resource types with the syntax of admission webhooks.
type Selection struct {
	// APIGroups are exact names, "" for core. An empty list, or one with `*`, selects all.
	APIGroups []string
	// APIVersions are exact names. An empty list, or one with `*`, selects the preferred version of each type, so that no
	// object is selected under two versions.
	APIVersions []string
	// Resources are plurals, `*`, or `resource.group`, which overrides APIGroups. `resource/*` includes the resource itself,
	// as in admission rules. Any other `resource/subresource` selects no objects and is reported. An empty list selects
	// Policy.Default.
	Resources []string
	// Scope excludes types of the other scope.
	Scope Scope
}

// Policy is the configuration of the server for selections that do not name their types.
type Policy struct {
	// Default are the types that a selection without resources selects. If empty, it selects what `*` selects.
	Default []schema.GroupResource
	// Exclude are the types that `*` and Default do not select. A type that is named exactly is selected nevertheless.
	Exclude []schema.GroupResource
}

// DefaultPolicy returns the policy whose Default are the types that describe a desired state, and whose Exclude are the
// types that the cluster's own components write and the records of this server.
func DefaultPolicy() Policy {
	return Policy{Default: preset(), Exclude: defaultExclusions()}
}

// Unmatched is an entry of a selection that selects nothing.
type Unmatched struct {
	// Resource is the entry of the selection, empty for a selection without resources.
	Resource string
	// Reason is a clause such as "no such resource type".
	Reason string
	// Uncertain is set if the type may exist, because the discovery of a group that may contain it failed.
	Uncertain bool
}

// String returns one line for the message of a condition.
func (u Unmatched) String() string {
	resource := u.Resource
	if resource == "" {
		resource = "the default resources"
	}
	return fmt.Sprintf("%s: %s", resource, u.Reason)
}

// Resolve returns the types that a selection selects, and the entries that select nothing. The types are unique, can be
// listed and watched, and are ordered by group, resource and version, the preferred version first.
func (s *Snapshot) Resolve(selection Selection, policy Policy) ([]Type, []Unmatched) {
	r := resolution{snapshot: s, selection: selection, policy: policy, selected: map[schema.GroupVersionResource]bool{}}
	var unmatched []Unmatched
	if len(selection.Resources) == 0 {
		if reason := r.selectDefault(); reason != "" {
			unmatched = append(unmatched, Unmatched{Reason: reason, Uncertain: r.uncertain("", false)})
		}
	}
	for _, entry := range selection.Resources {
		if reason, uncertain := r.selectEntry(entry); reason != "" {
			unmatched = append(unmatched, Unmatched{Resource: entry, Reason: reason, Uncertain: uncertain})
		}
	}
	return r.types(), unmatched
}

// resolution is one run of Resolve.
type resolution struct {
	snapshot  *Snapshot
	selection Selection
	policy    Policy
	selected  map[schema.GroupVersionResource]bool
}

// selectDefault returns why nothing was selected, empty if something was.
func (r *resolution) selectDefault() string {
	if len(r.policy.Default) == 0 {
		reason, _ := r.selectEntry(all)
		return reason
	}
	found := r.selectTypes(func(t Type) bool {
		resource := t.Resource.GroupResource()
		return r.groupSelected(t.Resource.Group) &&
			slices.Contains(r.policy.Default, resource) && !slices.Contains(r.policy.Exclude, resource)
	})
	if found.selected == 0 {
		return found.reason("none of them is in these groups, versions and scope; name resources to select others")
	}
	return ""
}

// selectEntry selects the types of one entry. If there are none, it returns the reason, and whether some may exist
// nevertheless.
func (r *resolution) selectEntry(entry string) (reason string, uncertain bool) {
	name, subresource, hasSubresource := strings.Cut(entry, "/")
	if hasSubresource && subresource != all {
		return "a subresource has no objects of its own", false
	}
	resource, group, hasGroup := strings.Cut(name, ".")
	found := r.selectTypes(func(t Type) bool {
		return (resource == all || resource == t.Resource.Resource) &&
			(hasGroup && group == t.Resource.Group || !hasGroup && r.groupSelected(t.Resource.Group)) &&
			!r.excluded(t.Resource.GroupResource(), resource == all, hasGroup)
	})
	if found.selected > 0 {
		return "", false
	}
	if slices.Contains(changedByCommits(), schema.GroupResource{Group: groupName, Resource: resource}) {
		return "every commit changes it, so a commit of it would cause another", false
	}
	if resource == all {
		return found.reason("every type in these groups is excluded by default; name resources to select them"), r.uncertain(group, hasGroup)
	}
	return found.reason("no such resource type" + r.suggestion(resource)), r.uncertain(group, hasGroup)
}

// excluded reports whether a type is not selected: `*` does not select it, it cannot be mirrored, or a selected type of
// another group has the same objects and the group of this one is not named.
func (r *resolution) excluded(resource schema.GroupResource, wildcard, groupNamed bool) bool {
	if slices.Contains(changedByCommits(), resource) || wildcard && slices.Contains(r.policy.Exclude, resource) {
		return true
	}
	original, ok := sameObjects()[resource]
	return ok && !groupNamed && !slices.Contains(r.selection.APIGroups, resource.Group) &&
		r.groupSelected(original.Group) && r.serves(original)
}

func (r *resolution) serves(resource schema.GroupResource) bool {
	return slices.ContainsFunc(r.snapshot.types, func(t Type) bool { return t.Resource.GroupResource() == resource })
}

// matches are the numbers of types that an entry names, by whether and why not they were selected.
type matches struct {
	selected, otherVersion, otherScope, unwatchable int
}

// selectTypes selects the named types that have a selected version and scope and can be watched.
func (r *resolution) selectTypes(named func(Type) bool) matches {
	var found matches
	for _, t := range r.snapshot.types {
		switch {
		case !named(t):
		case !r.versionSelected(t):
			found.otherVersion++
		case r.selection.Scope == ClusterScope && t.Namespaced, r.selection.Scope == NamespacedScope && !t.Namespaced:
			found.otherScope++
		case !t.Watchable:
			found.unwatchable++
		default:
			found.selected++
			r.selected[t.Resource] = true
		}
	}
	return found
}

// reason returns why nothing was selected. The closest match determines it.
func (m matches) reason(nothingNamed string) string {
	switch {
	case m.unwatchable > 0:
		return "it cannot be listed and watched"
	case m.otherScope > 0:
		return "it is of the other scope"
	case m.otherVersion > 0:
		return "it is not served in these versions"
	default:
		return nothingNamed
	}
}

func (r *resolution) groupSelected(group string) bool {
	groups := r.selection.APIGroups
	return len(groups) == 0 || slices.Contains(groups, all) || slices.Contains(groups, group)
}

func (r *resolution) versionSelected(t Type) bool {
	versions := r.selection.APIVersions
	if len(versions) == 0 || slices.Contains(versions, all) {
		return t.Preferred
	}
	return slices.Contains(versions, t.Resource.Version)
}

// uncertain reports whether discovery failed for a group that the entry may refer to.
func (r *resolution) uncertain(group string, hasGroup bool) bool {
	for failed := range r.snapshot.failed {
		if hasGroup && failed.Group == group || !hasGroup && r.groupSelected(failed.Group) {
			return true
		}
	}
	return false
}

// suggestion returns a hint if the resource exists in another group, or if the entry is a kind instead of a plural.
func (r *resolution) suggestion(resource string) string {
	for _, t := range r.snapshot.types {
		switch {
		case t.Resource.Resource == resource:
			return fmt.Sprintf(" in these groups; did you mean %s?", t.Resource.GroupResource())
		case strings.EqualFold(t.Kind, resource), strings.EqualFold(t.Resource.Resource, resource):
			return fmt.Sprintf("; did you mean %s?", t.Resource.Resource)
		}
	}
	return ""
}

// types returns the selected types in the order of the snapshot.
func (r *resolution) types() []Type {
	var types []Type
	for _, t := range r.snapshot.types {
		if r.selected[t.Resource] {
			types = append(types, t)
		}
	}
	return types
}
