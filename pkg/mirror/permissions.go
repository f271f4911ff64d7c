// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/access"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// permissions has the results of access reviews: whether the author of a rule may still read what the rule selects.
type permissions struct {
	access   access.Reviewer
	resolver access.Resolver

	mu sync.Mutex
	// reviews has the last review of each rule, by UID.
	reviews map[types.UID]review
	// required has what each rule needed when checkNew saw it last, by UID.
	required map[types.UID]needs
}

func newPermissions(reviewer access.Reviewer, resolver access.Resolver) *permissions {
	return &permissions{access: reviewer, resolver: resolver, reviews: map[types.UID]review{}, required: map[types.UID]needs{}}
}

// needs is the hash of the types that a rule selects, as access reviews name them. It changes when a type appears or disappears that the
// rule selects.
type needs [sha256.Size]byte

func needsOf(all []access.Permission) needs {
	var names []byte
	for _, each := range all {
		names = fmt.Appendf(names, "%s/%s\n", each.Group, strings.Join(each.Resources, ","))
	}
	return sha256.Sum256(names)
}

// review is the result for one generation of a rule, and therefore for one author, and for the types that existed then.
type review struct {
	generation int64
	needs      needs
	// problem is zero if the author has the permissions.
	problem conditions.Reason
}

// authoredRule is a rule of either kind whose author is recorded.
type authoredRule struct {
	object metav1.Object
	author access.Holder
	// needs returns the permissions that the rule needs, with the types that exist now.
	needs func() []access.Permission
}

// authoredRules returns the rules whose authors are recorded.
func (p *permissions) authoredRules(in inputs) []authoredRule {
	var out []authoredRule
	for _, rule := range in.rules {
		if author, known := access.Mirroring(&rule.Status); known {
			out = append(out, authoredRule{rule, author, func() []access.Permission {
				needs, _ := access.OfRule(p.resolver, rule)
				return needs
			}})
		}
	}
	for _, rule := range in.clusterRules {
		if author, known := access.Mirroring(&rule.Status); known {
			out = append(out, authoredRule{rule, author, func() []access.Permission {
				needs, _ := access.OfClusterRule(p.resolver, rule)
				return needs
			}})
		}
	}
	return out
}

// checkNew reviews the rules without a review of their generation and of the types that they select now, and forgets deleted rules. A rule
// whose review fails is not in force; the files that it selects stay as they are.
func (p *permissions) checkNew(ctx context.Context, in inputs) error {
	rules, existing := p.authoredRules(in), sets.New[types.UID]()
	var errs []error
	for _, rule := range rules {
		existing.Insert(rule.object.GetUID())
		required := rule.needs()
		p.require(rule.object, needsOf(required))
		if _, known := p.known(rule.object); known || len(errs) > 0 {
			continue
		}
		if _, err := p.check(ctx, rule, required); err != nil {
			errs = append(errs, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.reviews, func(uid types.UID, _ review) bool { return !existing.Has(uid) })
	maps.DeleteFunc(p.required, func(uid types.UID, _ needs) bool { return !existing.Has(uid) })
	return utilerrors.NewAggregate(errs)
}

// require records what a rule needs. A review of other types no longer counts.
func (p *permissions) require(rule metav1.Object, required needs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.required[rule.GetUID()] = required
}

// checkAll reviews all rules again and reports whether a result has changed. A failed review leaves the last result and does not prevent
// the others: an authorizer may fail for one user only.
func (p *permissions) checkAll(ctx context.Context, in inputs) (changed bool, err error) {
	var errs []error
	for _, rule := range p.authoredRules(in) {
		if ctx.Err() != nil {
			break
		}
		different, err := p.check(ctx, rule, rule.needs())
		changed = changed || different
		if err != nil {
			errs = append(errs, err)
		}
	}
	return changed, utilerrors.NewAggregate(errs)
}

// check reviews whether the author of a rule has the permissions that it requires, and reports whether the result has changed.
func (p *permissions) check(ctx context.Context, rule authoredRule, required []access.Permission) (changed bool, err error) {
	lost, err := p.access.Check(ctx, rule.author, required)
	if err != nil {
		return false, fmt.Errorf("check what the author of rule %s may read: %w", nameOf(rule.object), err)
	}
	next := review{generation: rule.object.GetGeneration(), needs: needsOf(required)}
	if lost != "" {
		next.problem = conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: lost}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.reviews[rule.object.GetUID()]
	p.reviews[rule.object.GetUID()] = next
	return !known || before.problem != next.problem, nil
}

// known returns the last review's problem, and whether there is a review of the rule's generation and of what it needs.
func (p *permissions) known(rule metav1.Object) (conditions.Reason, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known := p.reviews[rule.GetUID()]
	return found.problem, known && found.generation == rule.GetGeneration() && found.needs == p.required[rule.GetUID()]
}

// allow returns why a rule must not be in force; zero if it may.
func (p *permissions) allow(rule metav1.Object, status *v1alpha1.WatchRuleStatus) conditions.Reason {
	author, recorded := access.Mirroring(status)
	if !recorded {
		return conditions.Reason{}
	}
	if found, known := p.known(rule); known {
		return found
	}
	return conditions.Progressing(fmt.Sprintf("whether %s may read what the rule selects is being determined", author))
}
