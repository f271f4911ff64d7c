// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
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
}

// review is the result for one generation of a rule, and therefore for one author.
type review struct {
	generation int64
	// problem is zero if the author has the permissions.
	problem conditions.Reason
}

// authoredRule is a rule of either kind whose author is recorded.
type authoredRule struct {
	object metav1.Object
	author access.Holder
	// needs returns the permissions that the rule needs.
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

// checkNew reviews the rules without a review of their generation, and forgets deleted rules. A rule whose review fails is not in force;
// the files that it selects stay as they are.
func (p *permissions) checkNew(ctx context.Context, in inputs) error {
	rules, existing := p.authoredRules(in), sets.New[types.UID]()
	var errs []error
	for _, rule := range rules {
		existing.Insert(rule.object.GetUID())
		if _, known := p.known(rule.object); known || len(errs) > 0 {
			continue
		}
		if _, err := p.check(ctx, rule); err != nil {
			errs = append(errs, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid := range p.reviews {
		if !existing.Has(uid) {
			delete(p.reviews, uid)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// checkAll reviews all rules again and reports whether a result has changed. A failed review leaves the last result and does not prevent
// the others: an authorizer may fail for one user only.
func (p *permissions) checkAll(ctx context.Context, in inputs) (changed bool, err error) {
	var errs []error
	for _, rule := range p.authoredRules(in) {
		if ctx.Err() != nil {
			break
		}
		different, err := p.check(ctx, rule)
		changed = changed || different
		if err != nil {
			errs = append(errs, err)
		}
	}
	return changed, utilerrors.NewAggregate(errs)
}

// check reviews a rule and reports whether the result has changed.
func (p *permissions) check(ctx context.Context, rule authoredRule) (changed bool, err error) {
	lost, err := p.access.Check(ctx, rule.author, rule.needs())
	if err != nil {
		return false, fmt.Errorf("check what the author of rule %s may read: %w", nameOf(rule.object), err)
	}
	next := review{generation: rule.object.GetGeneration()}
	if lost != "" {
		next.problem = conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: lost}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.reviews[rule.object.GetUID()]
	p.reviews[rule.object.GetUID()] = next
	return !known || before.problem != next.problem, nil
}

// known returns the last review's problem, and whether there is a review of the rule's generation.
func (p *permissions) known(rule metav1.Object) (conditions.Reason, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known := p.reviews[rule.GetUID()]
	return found.problem, known && found.generation == rule.GetGeneration()
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
