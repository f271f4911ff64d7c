// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// seedPusher pushes the changes of comparisons and sweeps.
type seedPusher struct {
	// branch is the name of the branch.
	branch string
	stager *stager
	pusher *pusher
	// event records an Event of a destination: eventType is Normal or Warning.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
}

// push pushes the changes of comparisons as one commit, or as one for each known author.
func (p *seedPusher) push(
	ctx context.Context, members []member, m member, changes []outbox.Change, listed map[watch.Watch]position,
) (pushed, error) {
	if len(changes) == 0 {
		return pushed{}, nil
	}
	b := &batch{member: m, listed: listed}
	for _, g := range groupFound(m.plan.object.Spec.Granularity, changes) {
		if err := p.stager.stage(m, g, true, &b.pushed); err != nil {
			return pushed{}, err
		}
	}
	if err := p.pusher.push(ctx, members, []*batch{b}); err != nil {
		return pushed{}, err
	}
	m.destination.record.orphansRemoved(b.pushed.removed)
	return b.pushed, nil
}

// announce records the Events of an accepted push of comparisons; orphans describes the removed files. They are lost if
// the process dies before.
func (p *seedPusher) announce(m member, result pushed, orphans string) {
	if result.written > 0 {
		p.event(m.plan.object, corev1.EventTypeNormal, reasonSeeded, fmt.Sprintf(
			"A comparison with the cluster has written %s to branch %s; the last commit is %s",
			summary.Count(result.written, "file"), p.branch, result.last))
	}
	if result.removed > 0 {
		p.event(m.plan.object, corev1.EventTypeNormal, reasonOrphansRemoved, fmt.Sprintf(
			"A comparison with the cluster has removed %s %s from branch %s; the last commit is %s",
			summary.Count(result.removed, "file"), orphans, p.branch, result.last))
	}
}
