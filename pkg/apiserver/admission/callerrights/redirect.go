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

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// redirectedByDestination is what existing rules send to a destination that is new, or that leads elsewhere than old.
func (p *Plugin) redirectedByDestination(ctx context.Context, o *v1alpha1.GitDestination, old runtime.Object) ([]access.Permission, error) {
	if before, ok := old.(*v1alpha1.GitDestination); ok && sameGoal(o, before) {
		return nil, nil
	}
	flow, err := p.newFlow(ctx, "or use a GitDestination of another name")
	if err != nil {
		return nil, err
	}
	flow.into(o)
	return flow.permissions, nil
}

// sameGoal says whether two versions of a destination send the same things to the same readers.
func sameGoal(o, before *v1alpha1.GitDestination) bool {
	return repositoryOf(o) == repositoryOf(before) &&
		o.Spec.Branch == before.Spec.Branch &&
		o.Spec.Secrets == before.Spec.Secrets &&
		equality.Semantic.DeepEqual(o.Spec.Encryption, before.Spec.Encryption)
}

// redirectedByRepository is what existing rules send to a repository that is new (before is nil), or that lies elsewhere
// than before.
func (p *Plugin) redirectedByRepository(ctx context.Context, o, before *v1alpha1.GitRepoConfig) ([]access.Permission, error) {
	if before != nil && o.Spec.RepoURL == before.Spec.RepoURL &&
		equality.Semantic.DeepEqual(o.Spec.SecretRef, before.Spec.SecretRef) {
		return nil, nil
	}
	destinations, err := p.references.GitDestinations(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the destinations: %w", err)
	}
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	destinations = slices.DeleteFunc(destinations, func(d v1alpha1.GitDestination) bool { return repositoryOf(&d) != key })
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
	return flow.permissions, nil
}

// repositoryOf is the repository that a destination refers to.
func repositoryOf(destination *v1alpha1.GitDestination) types.NamespacedName {
	return target(destination.Spec.RepoRef, destination.Namespace)
}

// target is what a reference in an object of namespace names.
func target(ref v1alpha1.ObjectReference, namespace string) types.NamespacedName {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: ref.Name}
}

// flow gathers what existing rules, and the archive of the SyncPolicy, send to destinations. They count whether or not the
// destination admits them, since its owner can admit them later.
type flow struct {
	senders     []sender
	remedy      string
	permissions []access.Permission
	// seen keeps permissions from being asked for twice.
	seen map[subject]bool
}

// sender is what sends something to a destination.
type sender struct {
	to types.NamespacedName
	// cause is a clause that the destination ends.
	cause string
	read  func() wanted
}

// subject is what a permission to read is about.
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
	return &flow{senders: p.senders(rules, clusterRules, policies), remedy: remedy, seen: map[subject]bool{}}, nil
}

func (p *Plugin) senders(
	rules []v1alpha1.WatchRule, clusterRules []v1alpha1.ClusterWatchRule, policies []v1alpha1.SyncPolicy,
) []sender {
	var senders []sender
	for i := range rules {
		rule := &rules[i]
		senders = append(senders, sender{
			to: target(rule.Spec.DestinationRef, rule.Namespace), cause: fmt.Sprintf("which WatchRule %s/%s sends to", rule.Namespace, rule.Name),
			read: func() wanted { return p.readByRule(rule) },
		})
	}
	for i := range clusterRules {
		rule := &clusterRules[i]
		senders = append(senders, sender{
			to: types.NamespacedName(rule.Spec.DestinationRef), cause: fmt.Sprintf("which ClusterWatchRule %s sends to", rule.Name),
			read: func() wanted { return p.readByClusterRule(rule) },
		})
	}
	for i := range policies {
		archive := policies[i].Spec.Retention.Archive
		if archive == nil || archive.DestinationRef == nil {
			continue
		}
		senders = append(senders, sender{
			to: types.NamespacedName(*archive.DestinationRef), cause: "which the SyncPolicy archives in",
			read: func() wanted { return wanted{permissions: access.OfPolicy(&policies[i])} },
		})
	}
	return senders
}

// into gathers what is sent to a destination.
func (f *flow) into(destination *v1alpha1.GitDestination) {
	key := types.NamespacedName{Namespace: destination.Namespace, Name: destination.Name}
	// With Encrypt, Secrets are readable for whoever chose the recipients.
	secrets := destination.Spec.Secrets != v1alpha1.SecretsOmit
	for _, s := range f.senders {
		if s.to != key {
			continue
		}
		f.add(s.read(), secrets, fmt.Sprintf("%s GitDestination %s", s.cause, key))
	}
}

// add gathers what one sender reads, without Secrets if they are left out.
func (f *flow) add(read wanted, secrets bool, cause string) {
	for _, p := range read.permissions {
		p.Resources = slices.DeleteFunc(slices.Clone(p.Resources), func(resource string) bool {
			about := subject{p.Namespace, p.Group, resource}
			omitted := !secrets && p.Group == "" && resource == "secrets"
			if omitted || f.seen[about] {
				return true
			}
			f.seen[about] = true
			return false
		})
		if len(p.Resources) > 0 {
			p.Cause, p.Remedy = cause, f.remedy
			f.permissions = append(f.permissions, p)
		}
	}
}
