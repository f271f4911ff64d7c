// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// redirectedByDestination returns the permissions for what existing rules send to a new destination, to one with more or other
// readers than old, or to one that admits more rules.
func (p *Plugin) redirectedByDestination(ctx context.Context, o *v1alpha1.GitDestination, old runtime.Object) ([]access.Permission, error) {
	before, isUpdate := old.(*v1alpha1.GitDestination)
	redirected := !isUpdate || hasOtherReaders(o, before)
	if !redirected && equality.Semantic.DeepEqual(o.Spec.AccessPolicy, before.Spec.AccessPolicy) {
		return nil, nil
	}
	flow, err := p.newFlow(ctx, "or use a GitDestination of another name")
	if err != nil {
		return nil, err
	}
	change := redirection{whole: redirected, after: []policy{policyOf(o)}}
	if isUpdate {
		change.before = []policy{policyOf(before)}
	}
	err = flow.into(o, change)
	return flow.permissions, err
}

// hasOtherReaders reports whether a destination sends content to readers to whom it did not send it before: to others, or more of it.
func hasOtherReaders(o, before *v1alpha1.GitDestination) bool {
	branch, base := o.Branches()
	branchBefore, baseBefore := before.Branches()
	return repositoryOf(o) != repositoryOf(before) || branch != branchBefore || base != baseBefore ||
		showsMoreSecrets(&o.Spec, &before.Spec) || showsMoreFields(&o.Spec, &before.Spec)
}

// showsMoreFields reports whether fields may be written that were left out before: a rule that left some out was removed or changed.
func showsMoreFields(spec, before *v1alpha1.GitDestinationSpec) bool {
	return slices.ContainsFunc(before.Ignore, func(rule v1alpha1.IgnoreRule) bool {
		return !slices.ContainsFunc(spec.Ignore, func(other v1alpha1.IgnoreRule) bool { return equality.Semantic.DeepEqual(rule, other) })
	})
}

// showsMoreSecrets reports whether the values of Secrets can be read by more users than before.
func showsMoreSecrets(spec, before *v1alpha1.GitDestinationSpec) bool {
	switch {
	case spec.Secrets == v1alpha1.SecretsOmit, before.Secrets == v1alpha1.SecretsAsIs:
		return false
	case spec.Secrets != before.Secrets:
		return true
	}
	had := recipientsOf(before)
	return slices.ContainsFunc(recipientsOf(spec), func(recipient string) bool { return !slices.Contains(had, recipient) })
}

// recipientsOf returns the recipients of encrypted Secrets. The empty one stands for the key pair of the server, which users who can read
// the Secrets of the destination's namespace can use.
func recipientsOf(spec *v1alpha1.GitDestinationSpec) []string {
	if spec.Encryption == nil || len(spec.Encryption.AgeRecipients) == 0 {
		return []string{""}
	}
	return spec.Encryption.AgeRecipients
}

// isReachedOtherwise reports whether a repository is reached with other credentials, through another proxy, or has its pull requests at
// another API.
func isReachedOtherwise(spec, before *v1alpha1.GitRepoConfigSpec) bool {
	return !equality.Semantic.DeepEqual(spec.SecretRef, before.SecretRef) || spec.Provider != before.Provider ||
		!equality.Semantic.DeepEqual(spec.ProxySecretRef, before.ProxySecretRef) || !equality.Semantic.DeepEqual(spec.Host, before.Host)
}

// redirectedByRepository returns the permissions for what existing rules send to a new repository (before is nil), to one with
// another location than before, or to one that admits more destinations or rules.
func (p *Plugin) redirectedByRepository(ctx context.Context, o, before *v1alpha1.GitRepoConfig) ([]access.Permission, error) {
	redirected := before == nil || o.Spec.RepoURL != before.Spec.RepoURL || isReachedOtherwise(&o.Spec, &before.Spec)
	if !redirected && equality.Semantic.DeepEqual(o.Spec.AccessPolicy, before.Spec.AccessPolicy) {
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
		d := &destinations[i]
		change := redirection{whole: redirected, after: []policy{policyOf(d), policyOfRepository(o)}}
		if before != nil {
			change.before = []policy{policyOf(d), policyOfRepository(before)}
		}
		if err := flow.into(d, change); err != nil {
			return nil, err
		}
	}
	return flow.permissions, nil
}

// repositoryOf returns the repository of a destination.
func repositoryOf(destination *v1alpha1.GitDestination) types.NamespacedName {
	return target(destination.Spec.RepoRef, destination.Namespace)
}

// target resolves a reference in an object of namespace.
func target(ref v1alpha1.ObjectReference, namespace string) types.NamespacedName {
	if ref.Namespace != "" {
		namespace = ref.Namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: ref.Name}
}

// flow collects what existing rules, and the archive of the SyncPolicy, send to destinations.
type flow struct {
	senders     []sender
	remedy      string
	permissions []access.Permission
	// seen removes duplicate permissions.
	seen map[subject]bool
	// admittance decides which of the senders are admitted.
	admittance admittance
}

// sender is an object that sends content to a destination.
type sender struct {
	to types.NamespacedName
	// from is the namespace of a WatchRule; empty if the object is cluster-scoped.
	from string
	// always is set for an object that needs no admission by the destination.
	always bool
	// cause is a clause to which the destination is appended.
	cause string
	read  func() requirements
}

// subject is the subject of a read permission.
type subject struct{ namespace, group, resource string }

// newFlow lists the existing rules and the SyncPolicy.
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
	return &flow{
		senders: p.senders(rules, clusterRules, policies), remedy: remedy, seen: map[subject]bool{},
		admittance: admittance{ctx: ctx, references: p.references, labels: map[string]labels.Set{}},
	}, nil
}

func (p *Plugin) senders(
	rules []v1alpha1.WatchRule, clusterRules []v1alpha1.ClusterWatchRule, policies []v1alpha1.SyncPolicy,
) []sender {
	var senders []sender
	for i := range rules {
		rule := &rules[i]
		senders = append(senders, sender{
			to: target(rule.Spec.DestinationRef, rule.Namespace), from: rule.Namespace,
			cause: fmt.Sprintf("which WatchRule %s/%s sends to", rule.Namespace, rule.Name),
			read:  func() requirements { return p.requirementsOfRule(rule) },
		})
	}
	for i := range clusterRules {
		rule := &clusterRules[i]
		senders = append(senders, sender{
			to: types.NamespacedName(rule.Spec.DestinationRef), cause: fmt.Sprintf("which ClusterWatchRule %s sends to", rule.Name),
			read: func() requirements { return p.requirementsOfClusterRule(rule) },
		})
	}
	for i := range policies {
		archive := policies[i].Spec.Retention.Archive
		if archive == nil || archive.DestinationRef == nil {
			continue
		}
		senders = append(senders, sender{
			to: types.NamespacedName(*archive.DestinationRef), always: true, cause: "which the SyncPolicy archives in",
			read: func() requirements { return requirements{permissions: access.OfSyncPolicy(&policies[i])} },
		})
	}
	return senders
}

// into adds what a change begins to send to the readers of a destination.
func (f *flow) into(destination *v1alpha1.GitDestination, change redirection) error {
	key := types.NamespacedName{Namespace: destination.Namespace, Name: destination.Name}
	// With Encrypt, the user who chose the recipients can decrypt Secrets.
	secrets := destination.Spec.Secrets != v1alpha1.SecretsOmit
	for _, s := range f.senders {
		if s.to != key {
			continue
		}
		counts, err := f.admittance.concerns(change, s, destination.Namespace)
		if err != nil {
			return err
		}
		if counts {
			f.add(s.read(), secrets, fmt.Sprintf("%s GitDestination %s", s.cause, key))
		}
	}
	return nil
}

// add adds what one sender reads, except Secrets if they are omitted.
func (f *flow) add(read requirements, secrets bool, cause string) {
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
