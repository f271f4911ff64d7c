// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// pusher pushes the staged commits of a branch.
type pusher struct {
	remote  *remoteBranch
	lease   *branchLease
	race    *race
	pushes  *pushes
	outbox  *outbox.Outbox
	folders folderStates
	markers *markers
	// proposer is that of the branch.
	proposer *proposer
	// event records an Event of a destination: eventType is Normal or Warning.
	event func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	// changed requests an update of conditions.
	changed func()
}

// push writes a note of the staged commits, pushes them, and removes the rows once the remote has accepted them. After an
// error the rows remain.
func (p *pusher) push(ctx context.Context, members []member, batches []*batch) error {
	began := time.Now()
	note := noteOf(batches)
	failpoint.Reach("commits-staged")
	sent := !note.Tip.IsZero()
	if sent {
		p.race.carried = carried(batches)
		var span trace.Span
		ctx, span = p.startSpan(ctx, batches)
		err := p.lease.during(ctx, func(ctx context.Context) error { return p.send(ctx, note, batches) })
		tracing.End(span, err)
		for _, m := range members {
			m.destination.record.leased(p.lease.holder)
		}
		if err != nil {
			return rejectedPush(err, batches)
		}
		p.record(ctx, note, members, batches, began)
		if err := p.pushes.accepted(ctx, *note); err != nil {
			return err // The recovery finds the push and records it then.
		}
	}
	if err := p.removeRows(ctx, note, batches); err != nil {
		return err
	}
	failpoint.Reach("rows-removed")
	if sent {
		p.pushes.passed(ctx, *note)
	}
	p.changed()
	return nil
}

// noteOf returns the note of a push, without its base. The tip is zero if there is no commit.
func noteOf(batches []*batch) *pushNote {
	note := &pushNote{Through: map[types.UID]uint64{}}
	for _, b := range batches {
		if b.pushed.commits > 0 {
			note.Tip = b.pushed.last
		}
		if n := len(b.rows); n > 0 {
			note.Through[b.member.destination.uid] = b.rows[n-1].Sequence
		}
		if len(b.listed) > 0 {
			note.Compares = append(note.Compares, &notedComparison{UID: b.member.destination.uid, Time: time.Now(), listed: b.listed})
		}
	}
	return note
}

// specsOf returns the Changes of the commits of a push.
func specsOf(batches []*batch) (changes []v1alpha1.ChangeSpec) {
	for _, b := range batches {
		changes = append(changes, b.pushed.changes...)
	}
	return changes
}

// send pushes the staged commits. If other writers are faster, it follows them, with a new note each time.
func (p *pusher) send(ctx context.Context, note *pushNote, batches []*batch) error {
	if err := p.proposer.pushing(ctx, p.remote.branch.Ahead(), nil); err != nil {
		return err
	}
	if err := p.pushes.prepare(ctx, p.remote.branch.Tip(), note, specsOf(batches)); err != nil {
		return err
	}
	failpoint.Reach("push-noted")
	push := func() ([]gitrepo.Hash, error) { return p.remote.branch.Push(ctx) }
	if len(p.pushes.doubts) == 1 { // If an earlier push has landed, the recovery must remove its rows first.
		push = func() ([]gitrepo.Hash, error) {
			return p.remote.branch.PushFollowing(ctx, func(ctx context.Context, renamed map[gitrepo.Hash]gitrepo.Hash) error {
				return p.overtaken(ctx, note, batches, renamed)
			})
		}
	}
	if _, err := push(); err != nil {
		return p.pushes.failed(ctx, *note, err)
	}
	failpoint.Reach("pushed")
	commitBatches.Inc()
	return nil
}

// overtaken records that another writer was faster, and notes the commits with the hashes that they have on its commit.
func (p *pusher) overtaken(ctx context.Context, note *pushNote, batches []*batch, renamed map[gitrepo.Hash]gitrepo.Hash) error {
	rebaseRetries.Inc()
	p.race.overtaken()
	earlier := *note
	note.Tip = renamed[note.Tip]
	for _, b := range batches {
		b.member.destination.record.overtaken()
		b.pushed.rename(renamed)
	}
	return p.pushes.replace(ctx, earlier, p.remote.branch.Tip(), note, specsOf(batches))
}

// record records a push that the remote has accepted with the destinations.
func (p *pusher) record(ctx context.Context, note *pushNote, members []member, batches []*batch, began time.Time) {
	p.race.won()
	p.pushes.compare(note.Compares)
	tree := p.remote.tree()
	p.folders.record(tree, members)
	publishTree(tree, members)
	for _, b := range batches {
		d := b.member.destination
		d.record.pushed(b.pushed)
		d.record.owned(p.markers.ownership(tree, b.member))
		count(b.pushed)
		if warning := b.pushed.warning(); warning != "" {
			p.event(b.member.plan.object, corev1.EventTypeWarning, reasonNotAppliable, warning)
		}
		b.traceCommits(ctx, began)
		b.log(ctx, time.Since(began))
	}
}

// removeRows removes the rows of a push from the outbox and concurrently its prepared Changes, so that the store commits both together.
func (p *pusher) removeRows(ctx context.Context, note *pushNote, batches []*batch) error {
	var removing sync.WaitGroup
	defer removing.Wait()
	removing.Go(func() { p.pushes.unprepare(ctx, *note) })
	for _, b := range batches {
		if err := removeRows(ctx, p.outbox, b.member.destination, b.rows); err != nil {
			return err
		}
	}
	return nil
}

// removeRows removes rows that need no push any more from the outbox and the queue of their destination.
func removeRows(ctx context.Context, from *outbox.Outbox, d *destination, rows []outbox.Row) error {
	if err := from.Remove(ctx, rows); err != nil {
		return err
	}
	for _, seen := range d.queue.Removed(rows) {
		pushSeconds.Observe(time.Since(seen).Seconds())
	}
	return nil
}
