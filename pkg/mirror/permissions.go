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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/access"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// permissions know which rules are of somebody who may not read any more what they select.
type permissions struct {
	access   access.Reviewer
	resolver access.Resolver

	mu sync.Mutex
	of map[types.UID]judgement
}

// judgement is what was found out about a generation of a rule, and so about who wrote it.
type judgement struct {
	generation int64
	verdict    verdict
}

// written is a rule of either kind, by somebody.
type written struct {
	metav1.Object
	who   access.Holder
	takes func() []access.Permission
}

// writtenIn are the rules of which it is known who wrote them.
func (p *permissions) writtenIn(in inputs) []written {
	var out []written
	for _, rule := range in.rules {
		if who, known := access.Mirroring(&rule.Status); known {
			out = append(out, written{rule, who, func() []access.Permission {
				takes, _ := access.OfRule(p.resolver, rule)
				return takes
			}})
		}
	}
	for _, rule := range in.clusterRules {
		if who, known := access.Mirroring(&rule.Status); known {
			out = append(out, written{rule, who, func() []access.Permission {
				takes, _ := access.OfClusterRule(p.resolver, rule)
				return takes
			}})
		}
	}
	return out
}

// settle finds out about rules of which nothing is known yet, and forgets those that are gone. Those that nothing can be found out
// about are not in force: what they select stays as it is.
func (p *permissions) settle(ctx context.Context, in inputs) error {
	rules, there := p.writtenIn(in), sets.New[types.UID]()
	var errs []error
	for _, rule := range rules {
		there.Insert(rule.GetUID())
		if _, known := p.known(rule); known || len(errs) > 0 {
			continue
		}
		if _, err := p.judge(ctx, rule); err != nil {
			errs = append(errs, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid := range p.of {
		if !there.Has(uid) {
			delete(p.of, uid)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// again finds out whether something has changed. What cannot be found out stays as it was, and keeps nothing about other rules from
// being found out: an authorizer may fail for one user only.
func (p *permissions) again(ctx context.Context, in inputs) (changed bool, err error) {
	var errs []error
	for _, rule := range p.writtenIn(in) {
		if ctx.Err() != nil {
			break
		}
		different, err := p.judge(ctx, rule)
		changed = changed || different
		if err != nil {
			errs = append(errs, err)
		}
	}
	return changed, utilerrors.NewAggregate(errs)
}

// judge asks about a rule.
func (p *permissions) judge(ctx context.Context, rule written) (changed bool, err error) {
	lost, err := p.access.Check(ctx, rule.who, rule.takes())
	if err != nil {
		return false, fmt.Errorf("find out what the author of rule %s may read: %w", nameOf(rule), err)
	}
	next := judgement{generation: rule.GetGeneration()}
	if lost != "" {
		next.verdict = verdict{v1alpha1.ReasonPermissionLost, lost}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.of[rule.GetUID()]
	p.of[rule.GetUID()] = next
	return !known || before.verdict != next.verdict, nil
}

func (p *permissions) known(rule metav1.Object) (verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known := p.of[rule.GetUID()]
	return found.verdict, known && found.generation == rule.GetGeneration()
}

// allow says whether a rule may be in force.
func (p *permissions) allow(rule metav1.Object, status *v1alpha1.WatchRuleStatus) verdict {
	who, written := access.Mirroring(status)
	if !written {
		return verdict{}
	}
	if found, known := p.known(rule); known {
		return found
	}
	return verdict{v1alpha1.ReasonProgressing, fmt.Sprintf("whether %s may read what the rule selects is being found out", who)}
}

// recheckUntil asks about all rules now and then, until ctx ends, and for a new plan when something has changed.
func (m *mirror) recheckUntil(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		in, err := m.inputs()
		if err == nil {
			var changed bool
			if changed, err = m.permissions.again(ctx, in); changed {
				signal(m.replan)
			}
		}
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Permissions of rules' authors cannot be found out, trying again", "retryAfter", access.DeniedTTL)
		}
	}, access.DeniedTTL)
}
