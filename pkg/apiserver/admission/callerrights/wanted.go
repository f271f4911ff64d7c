// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// all stands for every group or every resource, in rules and in RBAC alike.
const all = "*"

// readVerbs are what following a type takes.
var readVerbs = []string{"list", "watch"}

// wanted is what an object makes the server do.
type wanted struct {
	needs    []need
	warnings []string
}

// change is an object that is written, and what it was before, or nil.
type change struct{ obj, old runtime.Object }

// wantedBy asks nothing for kinds that make the server do nothing, and for changes that make it do nothing new.
func (p *Plugin) wantedBy(ctx context.Context, c change) (wanted, error) {
	switch o := c.obj.(type) {
	case *configbutler.GitRepoConfig:
		return p.wantedByRepository(ctx, o, c.old)
	case *configbutler.GitDestination:
		needs, err := p.redirectedByDestination(ctx, o, c.old)
		return wanted{needs: needs}, err
	case *configbutler.WatchRule:
		before, ok := c.old.(*configbutler.WatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByRule(o), nil
	case *configbutler.ClusterWatchRule:
		before, ok := c.old.(*configbutler.ClusterWatchRule)
		if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
			return wanted{}, nil
		}
		return p.readByClusterRule(o), nil
	case *configbutler.SyncPolicy:
		before, ok := c.old.(*configbutler.SyncPolicy)
		if ok && equality.Semantic.DeepEqual(o.Spec.Retention.Archive, before.Spec.Retention.Archive) {
			return wanted{}, nil
		}
		return archivedBy(o), nil
	case *configbutler.AppCatalog:
		before, ok := c.old.(*configbutler.AppCatalog)
		if ok && showsNoMore(&o.Spec, &before.Spec) {
			return wanted{}, nil
		}
		return wanted{needs: shownBy(o)}, nil
	}
	return wanted{}, nil
}

// wantedByRepository are the Secrets that a repository names, and what it sends elsewhere.
func (p *Plugin) wantedByRepository(ctx context.Context, o *configbutler.GitRepoConfig, old runtime.Object) (wanted, error) {
	before, ok := old.(*configbutler.GitRepoConfig)
	if ok && equality.Semantic.DeepEqual(o.Spec, before.Spec) {
		return wanted{}, nil
	}
	redirected, err := p.redirectedByRepository(ctx, o, before)
	return wanted{needs: append(secretsOf(o), redirected...)}, err
}

// readByRule is what the server reads for a rule, in its namespace.
func (p *Plugin) readByRule(rule *configbutler.WatchRule) wanted {
	r := reading{resolver: p.resolver, namespace: rule.Namespace}
	for i, selected := range rule.Spec.Rules {
		r.add(selected, configbutler.ScopeNamespaced, field.NewPath("spec", "rules").Index(i))
	}
	return r.wanted
}

// readByClusterRule is what the server reads for a rule, in the whole cluster.
func (p *Plugin) readByClusterRule(rule *configbutler.ClusterWatchRule) wanted {
	r := reading{resolver: p.resolver}
	for i, selected := range rule.Spec.Rules {
		r.add(selected.ResourceRule, selected.Scope, field.NewPath("spec", "rules").Index(i))
	}
	return r.wanted
}

// archivedBy is what the server sends to a destination for a SyncPolicy.
func archivedBy(policy *configbutler.SyncPolicy) wanted {
	if archive := policy.Spec.Retention.Archive; archive == nil || archive.DestinationRef == nil {
		return wanted{}
	}
	return wanted{needs: []need{{
		verbs: []string{"list"}, group: configbutler.GroupName, resource: "syncstatuses",
		cause: onBehalf, remedy: "or let spec.retention.archive.type be File",
	}}}
}

// secretsOf are the Secrets that a repository names. Any change of its spec needs them: a new URL alone would send their
// content elsewhere.
func secretsOf(repository *configbutler.GitRepoConfig) []need {
	var needs []need
	add := func(name string, path *field.Path) {
		needs = append(needs, need{
			verbs: []string{"get"}, namespace: repository.Namespace, resource: "secrets", name: name,
			cause: onBehalf, remedy: fmt.Sprintf("or let %s name a Secret that you may read", path),
		})
	}
	if ref := repository.Spec.SecretRef; ref != nil {
		add(ref.Name, field.NewPath("spec", "secretRef", "name"))
	}
	if commit := repository.Spec.Commit; commit != nil && commit.Signing != nil {
		add(commit.Signing.SecretRef.Name, field.NewPath("spec", "commit", "signing", "secretRef", "name"))
	}
	return needs
}

// reading gathers what the rules of one object read.
type reading struct {
	resolver Resolver
	// namespace is that of the rule, empty for a rule that reads every namespace.
	namespace string
	wanted    wanted
}

// add gathers what one rule wants.
func (r *reading) add(rule configbutler.ResourceRule, scope configbutler.ResourceScope, path *field.Path) {
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
		r.wanted.warnings = append(r.wanted.warnings, fmt.Sprintf("%s: %s; it will be followed when it appears", path, text))
	}
	return types, known
}

// need wants to read a type, once.
func (r *reading) need(resource schema.GroupResource, remedy string) {
	same := func(n need) bool { return n.group == resource.Group && n.resource == resource.Resource }
	if slices.ContainsFunc(r.wanted.needs, same) {
		return
	}
	r.wanted.needs = append(r.wanted.needs, need{
		verbs: readVerbs, namespace: r.namespace, group: resource.Group, resource: resource.Resource,
		cause: onBehalf, remedy: remedy,
	})
}
