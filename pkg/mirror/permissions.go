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
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// permissions has the results of access reviews: whether the author of a rule may still read what the rule selects.
type permissions struct {
	access access.Reviewer
	// resolver returns a resolver of a snapshot.
	resolver func(*watch.Snapshot) access.Resolver

	mu sync.Mutex
	// reviews has the last review of each rule, by UID.
	reviews map[types.UID]review
}

func newPermissions(reviewer access.Reviewer, resolver func(*watch.Snapshot) access.Resolver) *permissions {
	return &permissions{access: reviewer, resolver: resolver, reviews: map[types.UID]review{}}
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

// review is the result for one generation of a rule, and therefore for one author, and for the types that the rule selected then.
type review struct {
	generation int64
	needs      needs
	// types are those from which the rule selected, or later ones from which it selects the same.
	types *watch.Snapshot
	// problem is zero if the author has the permissions.
	problem conditions.Reason
}

// authoredRule is a rule of either kind whose author is recorded.
type authoredRule struct {
	object metav1.Object
	author access.Holder
	// needs returns the permissions that the rule needs, with the types of the inputs.
	needs func() []access.Permission
}

// authoredRules returns the rules whose authors are recorded.
func (p *permissions) authoredRules(in inputs) []authoredRule {
	var out []authoredRule
	resolver := p.resolver(in.types)
	for _, rule := range in.rules {
		if author, known := access.Mirroring(&rule.Status); known {
			out = append(out, authoredRule{rule, author, func() []access.Permission {
				needs, _ := access.OfRule(resolver, rule)
				return needs
			}})
		}
	}
	for _, rule := range in.clusterRules {
		if author, known := access.Mirroring(&rule.Status); known {
			out = append(out, authoredRule{rule, author, func() []access.Permission {
				needs, _ := access.OfClusterRule(resolver, rule)
				return needs
			}})
		}
	}
	return out
}

// checkNew reviews the rules without a review of their generation and of the types that they select now, and forgets deleted rules. Where a
// review fails, the last one of the same generation counts, with the types of then. A rule without one is not in force, and the files that
// it selects stay as they are. After a failed review no other is made: the authorizer may not respond.
func (p *permissions) checkNew(ctx context.Context, in inputs) error {
	rules, existing := p.authoredRules(in), sets.New[types.UID]()
	var failure error
	for _, rule := range rules {
		existing.Insert(rule.object.GetUID())
		required := rule.needs()
		if p.covers(rule.object, needsOf(required), in.types) || failure != nil {
			continue
		}
		_, failure = p.check(ctx, rule, in.types, required)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.reviews, func(uid types.UID, _ review) bool { return !existing.Has(uid) })
	return failure
}

// covers reports whether there is a review of a rule's generation and of what it requires. That review then counts for the types, too.
func (p *permissions) covers(rule metav1.Object, required needs, of *watch.Snapshot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known := p.reviews[rule.GetUID()]
	if !known || found.generation != rule.GetGeneration() || found.needs != required {
		return false
	}
	found.types = of
	p.reviews[rule.GetUID()] = found
	return true
}

// checkAll reviews all rules again and reports whether a review differs from the last one. A failed review leaves the last result and does not prevent
// the others: an authorizer may fail for one user only.
func (p *permissions) checkAll(ctx context.Context, in inputs) (changed bool, err error) {
	var errs []error
	for _, rule := range p.authoredRules(in) {
		if ctx.Err() != nil {
			break
		}
		different, err := p.check(ctx, rule, in.types, rule.needs())
		changed = changed || different
		if err != nil {
			errs = append(errs, err)
		}
	}
	return changed, utilerrors.NewAggregate(errs)
}

// check reviews whether the author of a rule has the permissions that it requires for the types, and reports whether the review differs from
// the last one.
func (p *permissions) check(ctx context.Context, rule authoredRule, of *watch.Snapshot, required []access.Permission) (changed bool, err error) {
	lost, err := p.access.Check(ctx, rule.author, required)
	if err != nil {
		return false, fmt.Errorf("check what the author of rule %s may read: %w", nameOf(rule.object), err)
	}
	next := review{generation: rule.object.GetGeneration(), needs: needsOf(required), types: of}
	if lost != "" {
		next.problem = conditions.Reason{Code: v1alpha1.ReasonPermissionLost, Message: lost}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.reviews[rule.object.GetUID()]
	p.reviews[rule.object.GetUID()] = next
	before.types = of // What the rule needs counts, not all that the cluster serves.
	return !known || before != next, nil
}

// allow returns why a rule must not be in force; zero if it may. It may select from the returned types only, from all if they are nil.
func (p *permissions) allow(rule metav1.Object, status *v1alpha1.WatchRuleStatus) (*watch.Snapshot, conditions.Reason) {
	author, recorded := access.Mirroring(status)
	if !recorded {
		return nil, conditions.Reason{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, known := p.reviews[rule.GetUID()]; known && found.generation == rule.GetGeneration() {
		return found.types, found.problem
	}
	return nil, conditions.Progressing(fmt.Sprintf("whether %s may read what the rule selects is being determined", author))
}
