// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// policy is the access policy of an object in one version.
type policy struct {
	rules *v1alpha1.AccessPolicy
	// own is the namespace of the object.
	own string
	// destinations is set if the policy must admit the destination, too: that of its repository.
	destinations bool
}

func policyOf(d *v1alpha1.GitDestination) policy {
	return policy{rules: d.Spec.AccessPolicy, own: d.Namespace}
}

func policyOfRepository(r *v1alpha1.GitRepoConfig) policy {
	return policy{rules: r.Spec.AccessPolicy, own: r.Namespace, destinations: true}
}

// redirection is a change of a destination or a repository.
type redirection struct {
	// before and after are the policies that must all admit what is sent; before is nil for a new object.
	before, after []policy
	// whole is set if everything that is admitted gets other readers. Otherwise only what was not admitted before does.
	whole bool
}

// admittance decides what access policies admit. It is used for one request.
type admittance struct {
	ctx        context.Context //nolint:containedctx // it lives for one request
	references References
	// labels has the labels of namespaces that were read; nil for one that does not exist.
	labels map[string]labels.Set
	err    error
}

// concerns reports whether a change sends what a sender selects to other readers. namespace is that of the destination. A sender that
// no policy admits does not concern it: otherwise the author of a rule could keep the owner of a destination from changing it.
func (a *admittance) concerns(change redirection, s sender, namespace string) (bool, error) {
	was := change.before != nil && a.admitted(change.before, s, namespace)
	is := a.admitted(change.after, s, namespace)
	if a.err != nil {
		return false, a.err
	}
	if change.whole {
		return was || is, nil
	}
	return is && !was, nil
}

// admitted reports whether all policies admit a sender, and the repository's the destination.
func (a *admittance) admitted(policies []policy, s sender, namespace string) bool {
	for _, p := range policies {
		if p.destinations && !accesspolicy.Admits(p.rules, p.own, namespace, a.labelsOf) {
			return false
		}
		if !s.always && !a.admits(p, s.from) {
			return false
		}
	}
	return true
}

func (a *admittance) admits(p policy, from string) bool {
	if from == "" {
		return p.rules != nil && p.rules.AllowClusterRules
	}
	return accesspolicy.Admits(p.rules, p.own, from, a.labelsOf)
}

// labelsOf returns the labels of a namespace. The first error is kept in err.
func (a *admittance) labelsOf(name string) (labels.Set, bool) {
	if found, read := a.labels[name]; read {
		return found, found != nil
	}
	found, exists, err := a.references.NamespaceLabels(a.ctx, name)
	switch {
	case err != nil && a.err == nil:
		a.err = fmt.Errorf("reading the labels of namespace %s: %w", name, err)
	case exists && found == nil:
		found = labels.Set{}
	case !exists:
		found = nil
	}
	a.labels[name] = found
	return found, found != nil
}
