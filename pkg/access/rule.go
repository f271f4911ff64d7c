// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// all stands for every group or every resource, in rules and in RBAC alike.
const all = "*"

// readVerbs are what following a type takes.
var readVerbs = []string{"list", "watch"}

// OfRule is to read what a rule selects, in its namespace. The warnings say what in the rule selects nothing yet.
func OfRule(resolver Resolver, rule *v1alpha1.WatchRule) (permissions []Permission, warnings []string) {
	r := reading{resolver: resolver, verbs: readVerbs, namespace: rule.Namespace}
	for i, selected := range rule.Spec.Rules {
		r.add(selected, v1alpha1.ScopeNamespaced, field.NewPath("spec", "rules").Index(i))
	}
	return r.permissions, r.warnings
}

// OfClusterRule is to read what a rule selects, in the whole cluster. The warnings say what in the rule selects nothing yet.
func OfClusterRule(resolver Resolver, rule *v1alpha1.ClusterWatchRule) (permissions []Permission, warnings []string) {
	r := reading{resolver: resolver, verbs: readVerbs}
	for i, selected := range rule.Spec.Rules {
		r.add(selected.ResourceRule, selected.Scope, field.NewPath("spec", "rules").Index(i))
	}
	return r.permissions, r.warnings
}

// reading gathers what one object has the server read.
type reading struct {
	resolver Resolver
	verbs    []string
	// namespace is that of the rule, empty for what reads every namespace.
	namespace string

	permissions []Permission
	warnings    []string
}

// add gathers what one rule reads.
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

// addDefault wants the types that a rule without resources means.
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

// addEntry wants what one entry of resources names. Types that may appear later are in what is asked: a wildcard needs
// the right on the wildcard, and a name needs it in every group that is written, whether it is served there or not.
// Where no group is written, the types that have the name now are asked for.
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

// addNames wants a resource in the groups as they are written.
func (r *reading) addNames(groups []string, resource, remedy string) {
	if len(groups) == 0 {
		groups = []string{all}
	}
	for _, group := range groups {
		r.need(schema.GroupResource{Group: group, Resource: resource}, remedy)
	}
}

// resolve is what a selection means now, if that is known; what it does not match becomes a warning.
func (r *reading) resolve(selection Selection, path *field.Path) (types []schema.GroupResource, known bool) {
	types, unmatched, known := r.resolver.Resolve(selection)
	for _, text := range unmatched {
		r.warnings = append(r.warnings, fmt.Sprintf("%s: %s; it will be followed when it appears", path, text))
	}
	return types, known
}

// need wants to read a type, once.
func (r *reading) need(resource schema.GroupResource, remedy string) {
	same := func(p Permission) bool {
		return p.Group == resource.Group && slices.Contains(p.Resources, resource.Resource)
	}
	if slices.ContainsFunc(r.permissions, same) {
		return
	}
	r.permissions = append(r.permissions, Permission{
		Verbs: r.verbs, Namespace: r.namespace, Group: resource.Group, Resources: []string{resource.Resource},
		Cause: onBehalf, Remedy: remedy,
	})
}
