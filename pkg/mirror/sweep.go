// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// sweepAge is the age from which the files of a destination without rules are swept: a destination is often applied shortly
// before its rules.
const sweepAge = time.Minute

// sweepableAt returns when files that no rule selects can be removed: at once if the destination has or had rules, else
// when it is old enough.
func (d *destination) sweepableAt(p *destinationPlan) time.Time {
	if p.referred || d.hadRules.Load() {
		return time.Time{}
	}
	return p.object.CreationTimestamp.Add(sweepAge)
}

// sweeper removes the files of types that are no longer selected.
type sweeper struct {
	remote *remoteBranch
	pusher *seedPusher
	// changed requests an update of conditions.
	changed func()
}

// sweep removes the files of a member that are due to be swept. It removes nothing while a rule of the destination is not
// in force, and nothing of a group for which discovery failed.
func (s *sweeper) sweep(ctx context.Context, members []member, m member) error {
	p := m.plan
	if m.destination.plan.Load() != p {
		return nil
	}
	if p.held || time.Now().Before(m.destination.sweepableAt(p)) {
		s.record(m, found{}) // Sync requests do not wait for this.
		return nil
	}
	if !m.destination.seeds.takeSweep() {
		return nil
	}
	selected := map[schema.GroupVersionResource]bool{}
	for _, t := range p.types() {
		selected[t.Resource] = true
	}
	inScope := func(o outbox.Object) bool { return !selected[o.GroupVersionResource()] }
	var changes []outbox.Change
	var held []managedFile
	err := walkFiles(ctx, s.remote.tree(), p, "", func(file managedFile) {
		switch {
		case !inScope(file.object):
		case p.locked(file.object) && !m.destination.plainSecrets.Load():
			m.destination.seeds.sweepWhenKnown()
		case p.uncertain(file.object.Group):
			m.destination.seeds.sweepWhenKnown()
		case p.prunes():
			changes = append(changes, m.destination.removal(file))
		default:
			held = append(held, file)
		}
	})
	if err != nil {
		return err
	}
	m.destination.record.holdOnly(inScope, held, m.hasFile)
	pushed, err := s.pusher.push(ctx, members, m, changes, nil)
	if err == nil {
		s.pusher.announce(m, pushed, "of types that no rule selects any more")
		s.record(m, found{removed: pushed.removed, held: len(held)})
	}
	return err
}

// record records the result of a sweep with the sync requests that wait for it.
func (s *sweeper) record(m member, f found) {
	if m.destination.seeds.swept(f) {
		s.changed()
	}
}
