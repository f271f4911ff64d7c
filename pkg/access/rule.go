// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// all matches every group or every resource, both in rules and in RBAC.
const all = "*"

// readVerbs are the verbs for watching a type.
var readVerbs = []string{"list", "watch"}

// OfRule returns the permissions to read what a rule selects in its namespace. The warnings name what in the rule selects nothing yet.
func OfRule(resolver Resolver, rule *v1alpha1.WatchRule) (permissions []Permission, warnings []string) {
	r := reading{resolver: resolver, verbs: readVerbs, namespace: rule.Namespace}
	var size rulesSize
	for i := range rule.Spec.Rules {
		size.add(&rule.Spec.Rules[i])
	}
	if size.exceedsLimits() {
		return []Permission{r.everything(rulesPath)}, nil
	}
	for i, selected := range rule.Spec.Rules {
		r.add(selected, v1alpha1.ScopeNamespaced, rulesPath.Index(i))
	}
	return r.permissions, r.warnings
}

// OfClusterRule returns the permissions to read what a rule selects in the whole cluster. The warnings name what in the rule selects
// nothing yet.
func OfClusterRule(resolver Resolver, rule *v1alpha1.ClusterWatchRule) (permissions []Permission, warnings []string) {
	r := reading{resolver: resolver, verbs: readVerbs}
	var size rulesSize
	for i := range rule.Spec.Rules {
		size.add(&rule.Spec.Rules[i].ResourceRule)
	}
	if size.exceedsLimits() {
		return []Permission{r.everything(rulesPath)}, nil
	}
	for i, selected := range rule.Spec.Rules {
		r.add(selected.ResourceRule, selected.Scope, rulesPath.Index(i))
	}
	return r.permissions, r.warnings
}

var rulesPath = field.NewPath("spec", "rules")

// rulesSize is the size of the rules of one object.
type rulesSize struct{ rules, entries, types int }

func (s *rulesSize) add(rule *v1alpha1.ResourceRule) {
	s.rules++
	s.entries += len(rule.Operations) + len(rule.APIGroups) + len(rule.APIVersions) + len(rule.Resources)
	s.types += max(1, len(rule.APIGroups)) * max(1, len(rule.Resources))
}

// exceedsLimits reports whether validation rejects rules of this size. It keeps the work small for rules that have not been validated.
func (s *rulesSize) exceedsLimits() bool {
	return s.rules > v1alpha1.MaxRules || s.entries > v1alpha1.MaxRuleEntriesInAll || s.types > v1alpha1.MaxRuleTypes
}

// reading collects the permissions to read what one object selects.
type reading struct {
	resolver Resolver
	verbs    []string
	// namespace is the namespace of the rule; empty if every namespace is read.
	namespace string

	permissions []Permission
	warnings    []string
	// added are the types of permissions.
	added sets.Set[schema.GroupResource]
}

// everything returns the permission to read every type. An object that exceeds a limit needs it in place of the permissions for the
// types that it names, which may be too many to check.
func (r *reading) everything(path *field.Path) Permission {
	return r.permission(schema.GroupResource{Group: all, Resource: all}, fmt.Sprintf("or name fewer types in %s", path))
}

// add adds the types of one rule.
func (r *reading) add(rule v1alpha1.ResourceRule, scope v1alpha1.ResourceScope, path *field.Path) {
	selection := Selection{APIGroups: rule.APIGroups, APIVersions: rule.APIVersions, Scope: scope}
	if len(rule.Resources) == 0 {
		r.addDefault(selection, path)
		return
	}
	for _, entry := range rule.Resources {
		selection.Resources = []string{entry}
		r.addEntry(entry, selection, path.Child("resources"))
	}
}

// addDefault adds the types of a rule that names no resources.
func (r *reading) addDefault(selection Selection, path *field.Path) {
	remedy := fmt.Sprintf("or name the types that you may read in %s", path.Child("resources"))
	preset := r.resolver.Preset()
	if len(preset) == 0 {
		r.addNames(selection.APIGroups, all, remedy)
		return
	}
	if resolved, known := r.resolve(selection, path); known {
		preset = resolved
	}
	for _, resource := range preset {
		r.need(resource, remedy)
	}
}

// addEntry adds the types of one entry of resources. It includes types that may appear later: a wildcard needs the permission for the
// wildcard, and a name needs it in every group that the rule names, whether the group has that resource or not. If the rule names no group,
// the groups that have the resource now are added.
func (r *reading) addEntry(entry string, selection Selection, path *field.Path) {
	name, subresource, hasSubresource := strings.Cut(entry, "/")
	resolved, _ := r.resolve(selection, path)
	if hasSubresource && subresource != all {
		return // it selects no objects
	}
	resource, group, hasGroup := strings.Cut(name, ".")
	remedy := fmt.Sprintf("or leave %s out of %s", entry, path)
	groups := selection.APIGroups
	if hasGroup {
		groups = []string{group}
	}
	openGroup := len(groups) == 0 || slices.Contains(groups, all)
	if resource == all || !openGroup || len(resolved) == 0 {
		r.addNames(groups, resource, remedy)
		return
	}
	for _, found := range resolved {
		r.need(found, remedy)
	}
}

// addNames adds a resource in the groups that the rule names.
func (r *reading) addNames(groups []string, resource, remedy string) {
	if len(groups) == 0 {
		groups = []string{all}
	}
	for _, group := range groups {
		r.need(schema.GroupResource{Group: group, Resource: resource}, remedy)
	}
}

// resolve returns the types that a selection matches now; known is false if that is unknown. Parts that match none become warnings.
func (r *reading) resolve(selection Selection, path *field.Path) (types []schema.GroupResource, known bool) {
	types, unmatched, known := r.resolver.Resolve(selection)
	for _, text := range unmatched {
		r.warnings = append(r.warnings, fmt.Sprintf("%s: %s; it will be followed when it appears", path, text))
	}
	return types, known
}

// need adds the permission to read a type, unless it has been added.
func (r *reading) need(resource schema.GroupResource, remedy string) {
	if r.added.Has(resource) {
		return
	}
	if r.added == nil {
		r.added = sets.New[schema.GroupResource]()
	}
	r.added.Insert(resource)
	r.permissions = append(r.permissions, r.permission(resource, remedy))
}

func (r *reading) permission(resource schema.GroupResource, remedy string) Permission {
	return Permission{
		Verbs: r.verbs, Namespace: r.namespace, Group: resource.Group, Resources: []string{resource.Resource},
		Cause: onBehalf, Remedy: remedy,
	}
}
