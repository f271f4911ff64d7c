// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// redirectedByDestination is what existing rules send to a destination that is new, or that leads elsewhere than old.
func (p *Plugin) redirectedByDestination(ctx context.Context, o *configbutler.GitDestination, old runtime.Object) ([]need, error) {
	if before, ok := old.(*configbutler.GitDestination); ok && sameGoal(o, before) {
		return nil, nil
	}
	flow, err := p.newFlow(ctx, "or use a GitDestination of another name")
	if err != nil {
		return nil, err
	}
	flow.into(o)
	return flow.needs, nil
}

// sameGoal says whether two versions of a destination send the same things to the same readers.
func sameGoal(o, before *configbutler.GitDestination) bool {
	return repositoryOf(o) == repositoryOf(before) &&
		o.Spec.Branch == before.Spec.Branch &&
		o.Spec.Secrets == before.Spec.Secrets &&
		equality.Semantic.DeepEqual(o.Spec.Encryption, before.Spec.Encryption)
}

// redirectedByRepository is what existing rules send to a repository that is new (before is nil), or that lies elsewhere
// than before.
func (p *Plugin) redirectedByRepository(ctx context.Context, o, before *configbutler.GitRepoConfig) ([]need, error) {
	if before != nil && o.Spec.RepoURL == before.Spec.RepoURL &&
		equality.Semantic.DeepEqual(o.Spec.SecretRef, before.Spec.SecretRef) {
		return nil, nil
	}
	destinations, err := p.references.GitDestinations(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the destinations: %w", err)
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	destinations = slices.DeleteFunc(destinations, func(d configbutler.GitDestination) bool { return repositoryOf(&d) != key })
	if len(destinations) == 0 {
		return nil, nil
	}
	flow, err := p.newFlow(ctx, "or use a GitRepoConfig of another name")
	if err != nil {
		return nil, err
	}
	for i := range destinations {
		flow.into(&destinations[i])
	}
	return flow.needs, nil
}

// repositoryOf is the repository that a destination refers to.
func repositoryOf(destination *configbutler.GitDestination) types.NamespacedName {
	return target(destination.Spec.RepoRef, destination.Namespace)
}

// target is what a reference in an object of namespace names.
func target(ref configbutler.ObjectReference, namespace string) types.NamespacedName {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: ref.Name}
}

// flow gathers what existing rules, and the archive of the SyncPolicy, send to destinations. They count whether or not the
// destination admits them, since its owner can admit them later.
type flow struct {
	plugin       *Plugin
	rules        []configbutler.WatchRule
	clusterRules []configbutler.ClusterWatchRule
	policies     []configbutler.SyncPolicy
	remedy       string
	needs        []need
	// seen keeps needs from being asked for twice.
	seen map[subject]bool
}

// subject is what a need to read is about.
type subject struct{ namespace, group, resource string }

// newFlow knows the rules that exist, and the SyncPolicy.
func (p *Plugin) newFlow(ctx context.Context, remedy string) (*flow, error) {
	rules, err := p.references.WatchRules(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the rules: %w", err)
	}
	clusterRules, err := p.references.ClusterWatchRules(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the cluster rules: %w", err)
	}
	policies, err := p.references.SyncPolicies(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the SyncPolicies: %w", err)
	}
	return &flow{plugin: p, rules: rules, clusterRules: clusterRules, policies: policies, remedy: remedy, seen: map[subject]bool{}}, nil
}

// into gathers what the rules send to a destination.
func (f *flow) into(destination *configbutler.GitDestination) {
	key := types.NamespacedName{Namespace: destination.Namespace, Name: destination.Name}
	// With Encrypt, Secrets are readable for whoever chose the recipients.
	secrets := destination.Spec.Secrets != configbutler.SecretsOmit
	for i := range f.rules {
		rule := &f.rules[i]
		if target(rule.Spec.DestinationRef, rule.Namespace) != key {
			continue
		}
		f.add(f.plugin.readByRule(rule), secrets, fmt.Sprintf("which WatchRule %s/%s sends to GitDestination %s", rule.Namespace, rule.Name, key))
	}
	for i := range f.clusterRules {
		rule := &f.clusterRules[i]
		if types.NamespacedName(rule.Spec.DestinationRef) != key {
			continue
		}
		f.add(f.plugin.readByClusterRule(rule), secrets, fmt.Sprintf("which ClusterWatchRule %s sends to GitDestination %s", rule.Name, key))
	}
	for i := range f.policies {
		archive := f.policies[i].Spec.Retention.Archive
		if archive == nil || archive.DestinationRef == nil || types.NamespacedName(*archive.DestinationRef) != key {
			continue
		}
		f.add(archivedBy(&f.policies[i]), secrets, fmt.Sprintf("which the SyncPolicy archives in GitDestination %s", key))
	}
}

// add gathers what one rule reads, without Secrets if they are left out.
func (f *flow) add(read wanted, secrets bool, cause string) {
	for _, n := range read.needs {
		about := subject{n.namespace, n.group, n.resource}
		omitted := !secrets && n.group == "" && n.resource == "secrets"
		if omitted || f.seen[about] {
			continue
		}
		f.seen[about] = true
		n.cause, n.remedy = cause, f.remedy
		f.needs = append(f.needs, n)
	}
}
