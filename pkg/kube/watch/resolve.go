// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Scope narrows a selection to types of one scope.
type Scope string

const (
	// AnyScope is the zero value: both.
	AnyScope Scope = ""
	// ClusterScope means types whose objects are in no namespace.
	ClusterScope Scope = "Cluster"
	// NamespacedScope means types whose objects are in namespaces.
	NamespacedScope Scope = "Namespaced"
)

// all is the wildcard of admission rules.
const all = "*"

// Selection names resource types the way admission webhooks do.
type Selection struct {
	// APIGroups are exact names, "" for core; `*` among them or an empty list means all.
	APIGroups []string
	// APIVersions are exact names. `*` among them or an empty list means the preferred version of each type, as an
	// admission rule with `*` sees each change once too: nothing is selected twice under two versions.
	APIVersions []string
	// Resources are plurals, `*`, or `resource.group` for short, which names its group whatever APIGroups says.
	// `resource/*` includes the resource itself, as in admission rules; any other `resource/subresource` selects no
	// objects and is reported. An empty list means Policy.Default.
	Resources []string
	// Scope leaves types of the other scope out.
	Scope Scope
}

// Policy is what the server's flags say about selections that do not name their types.
type Policy struct {
	// Default is selected by a selection without resources; empty means everything that `*` means.
	Default []schema.GroupResource
	// Exclude is what `*` and Default never mean. A type that is named exactly is selected nevertheless.
	Exclude []schema.GroupResource
}

// DefaultPolicy selects by default the types that describe a desired state, and leaves out of `*` what the cluster
// writes for itself and the records of this server.
func DefaultPolicy() Policy {
	return Policy{Default: preset(), Exclude: defaultExclusions()}
}

// Unmatched is an entry of a selection that selects nothing.
type Unmatched struct {
	// Resource is the entry as it was written; empty for a selection without resources.
	Resource string
	// Reason is a clause that says why, for example "no such resource type".
	Reason string
	// Uncertain says that discovery of a group that might hold the type failed: it may well exist.
	Uncertain bool
}

// String makes one line for a condition's message.
func (u Unmatched) String() string {
	resource := u.Resource
	if resource == "" {
		resource = "the default resources"
	}
	return fmt.Sprintf("%s: %s", resource, u.Reason)
}

// Resolve returns the types that a selection means, each once, by group, resource and version with the preferred one
// first, and the entries that selected nothing. All types returned can be listed and watched.
func (s *Snapshot) Resolve(selection Selection, policy Policy) ([]Type, []Unmatched) {
	r := resolution{snapshot: s, selection: selection, policy: policy, chosen: map[schema.GroupVersionResource]bool{}}
	var unmatched []Unmatched
	if len(selection.Resources) == 0 {
		if reason := r.chooseDefault(); reason != "" {
			unmatched = append(unmatched, Unmatched{Reason: reason, Uncertain: r.uncertain("", false)})
		}
	}
	for _, entry := range selection.Resources {
		if reason, uncertain := r.choose(entry); reason != "" {
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
	chosen    map[schema.GroupVersionResource]bool
}

// chooseDefault returns why nothing was chosen, or "".
func (r *resolution) chooseDefault() string {
	if len(r.policy.Default) == 0 {
		reason, _ := r.choose(all)
		return reason
	}
	found := r.take(func(t Type) bool {
		resource := t.Resource.GroupResource()
		return r.groupSelected(t.Resource.Group) &&
			slices.Contains(r.policy.Default, resource) && !slices.Contains(r.policy.Exclude, resource)
	})
	if found.selected == 0 {
		return found.reason("none of them is in these groups, versions and scope; name resources to select others")
	}
	return ""
}

// choose takes the types that one entry means and returns why there are none, and whether there might be.
func (r *resolution) choose(entry string) (reason string, uncertain bool) {
	name, subresource, hasSubresource := strings.Cut(entry, "/")
	if hasSubresource && subresource != all {
		return "a subresource has no objects of its own", false
	}
	resource, group, hasGroup := strings.Cut(name, ".")
	found := r.take(func(t Type) bool {
		return (resource == all || resource == t.Resource.Resource) &&
			(hasGroup && group == t.Resource.Group || !hasGroup && r.groupSelected(t.Resource.Group)) &&
			!r.leftOut(t.Resource.GroupResource(), resource == all, hasGroup)
	})
	if found.selected > 0 {
		return "", false
	}
	if slices.Contains(selfFeeding(), schema.GroupResource{Group: groupName, Resource: resource}) {
		return "it changes with every commit and would never come to rest", false
	}
	if resource == all {
		return found.reason("all that it means here is left out by default; name resources to select them"), r.uncertain(group, hasGroup)
	}
	return found.reason("no such resource type" + r.suggestion(resource)), r.uncertain(group, hasGroup)
}

// leftOut holds for types that `*` does not mean, for those that feed on themselves, and for types that show the
// objects of another one that is selected as well, unless the group was named.
func (r *resolution) leftOut(resource schema.GroupResource, wildcard, groupNamed bool) bool {
	if slices.Contains(selfFeeding(), resource) || wildcard && slices.Contains(r.policy.Exclude, resource) {
		return true
	}
	original, ok := sameObjects()[resource]
	return ok && !groupNamed && !slices.Contains(r.selection.APIGroups, resource.Group) &&
		r.groupSelected(original.Group) && r.serves(original)
}

func (r *resolution) serves(resource schema.GroupResource) bool {
	return slices.ContainsFunc(r.snapshot.types, func(t Type) bool { return t.Resource.GroupResource() == resource })
}

// matches counts what became of the types that an entry named.
type matches struct {
	selected, otherVersion, otherScope, unwatchable int
}

// take chooses among the types named those of the right version and scope that can be watched.
func (r *resolution) take(named func(Type) bool) matches {
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
			r.chosen[t.Resource] = true
		}
	}
	return found
}

// reason says why nothing was selected, with the nearest miss first.
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

// uncertain says whether discovery failed for a group that the entry may refer to.
func (r *resolution) uncertain(group string, hasGroup bool) bool {
	for failed := range r.snapshot.failed {
		if hasGroup && failed.Group == group || !hasGroup && r.groupSelected(failed.Group) {
			return true
		}
	}
	return false
}

// suggestion helps those who named another group, or a kind or singular instead of the plural.
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

// types returns the choice in the snapshot's order.
func (r *resolution) types() []Type {
	var types []Type
	for _, t := range r.snapshot.types {
		if r.chosen[t.Resource] {
			types = append(types, t)
		}
	}
	return types
}
