// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// startSpan starts the span of the change, which ends when the change is in the outbox, and the wait for its author.
func (a *arrival) startSpan(ctx context.Context) context.Context {
	ctx, a.span = tracing.Start(ctx, "mirror.change", trace.WithTimestamp(a.seen))
	_, a.waiting = tracing.Start(ctx, "mirror.author")
	if a.span.IsRecording() {
		a.span.SetAttributes(objectAttributes(a.object.object, a.object.revision)...)
		a.span.SetAttributes(attribute.String("slipstream.operation", string(a.change.Operation)))
	}
	return ctx
}

// endWaiting ends the wait for the author, with the source that the author is known from.
func (a *arrival) endWaiting(author attribution.Author) {
	a.waiting.SetAttributes(attribute.String("slipstream.author.signal", string(author.Signal)))
	a.waiting.End()
}

func objectAttributes(o outbox.Object, resourceVersion string) []attribute.KeyValue {
	return tracing.Object(o.GroupVersionResource().GroupResource().String(), o.Namespace, o.Name, resourceVersion)
}

// traceOf returns the trace of a change that enters the outbox.
func traceOf(ctx context.Context) outbox.Trace {
	parent := tracing.Parent(ctx)
	if parent == "" {
		return outbox.Trace{}
	}
	return outbox.Trace{Parent: parent, Since: time.Now()}
}

// tracedChange is a change in a commit whose trace is sampled.
type tracedChange struct {
	trace  outbox.Trace
	object outbox.Object
	commit gitrepo.Hash
}

// tracedChanges returns the changes of a commit whose traces are sampled.
func tracedChanges(commit gitrepo.Hash, changes []outbox.Change) (traced []tracedChange) {
	for _, change := range changes {
		if change.Trace.Parent != "" {
			traced = append(traced, tracedChange{change.Trace, change.Object, commit})
		}
	}
	return traced
}

// startSpan starts the span of a push. It is in the trace of the first sampled change, and links to the traces of the others. Without one
// it has a trace of its own.
func (p *pusher) startSpan(ctx context.Context, batches []*batch) (context.Context, trace.Span) {
	var links []trace.Link
	first, commits := "", 0
	for _, b := range batches {
		commits += b.pushed.commits
		for _, change := range b.pushed.traced {
			if first == "" {
				first = change.trace.Parent
			} else if change.trace.Parent != first {
				links = append(links, tracing.Link(change.trace.Parent))
			}
		}
	}
	ctx, span := tracing.Start(tracing.WithParent(ctx, first), "mirror.push", trace.WithLinks(links...))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("slipstream.repository", p.remote.key.repository.String()),
			attribute.String("vcs.repository.url.full", p.remote.remote.String()),
			attribute.String("vcs.ref.head.name", p.remote.key.branch),
			attribute.Int("slipstream.commits", commits), attribute.Int("slipstream.changes", carried(batches)),
		)
	}
	return ctx, span
}

// traceCommits adds the spans of the changes in an accepted push to their traces: the wait in the outbox, which ended when the push began,
// and the commit, with a link to the push.
func (b *batch) traceCommits(ctx context.Context, began time.Time) {
	link := trace.LinkFromContext(ctx)
	for _, change := range b.pushed.traced {
		parent := tracing.WithParent(ctx, change.trace.Parent)
		_, waiting := tracing.Start(parent, "mirror.outbox", trace.WithTimestamp(change.trace.Since))
		waiting.End(trace.WithTimestamp(began))
		_, commit := tracing.Start(parent, "mirror.commit", trace.WithTimestamp(began), trace.WithLinks(link))
		commit.SetAttributes(objectAttributes(change.object, "")...)
		commit.SetAttributes(
			attribute.String("slipstream.destination", b.member.destination.key.String()),
			attribute.String("vcs.ref.head.revision", change.commit.String()),
		)
		commit.End()
	}
}
