// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// What a watch that is behind reads from the log at once.
const (
	catchUpEvents = 1000
	catchUpBytes  = 4 << 20
)

// watch is the cursor of one watcher. It sends every change of its span from its first revision on, in order and without
// gaps, at the reader's pace.
type watch struct {
	server *watchServer
	op     clientv3.Op
	span   span
	out    chan<- clientv3.WatchResponse

	// next is the first revision that was not processed yet: every change of the span before it has been sent.
	next int64
	// position publishes next to the watch server.
	position watchPosition

	// requested holds a request for progress; leave ends such requests.
	requested <-chan struct{}
	leave     func()
	// wanted is the revision to report once everything up to it was sent, 0 if none.
	wanted int64
	// reported is the last revision that was reported to the reader.
	reported int64
	// reportDue receives when a periodic report is due, and is nil if none is scheduled.
	reportDue <-chan time.Time
}

// serve sends changes until ctx or the engine ends, or until the changes it needs
// are compacted: those up to the compacted revision, which can still be read but no
// longer watched. (etcd sends the changes of that one revision without what the
// keys held before, which its store for Kubernetes answers with an internal error.)
// It closes the watch's channel.
func (w *watch) serve(ctx context.Context) {
	defer close(w.out)
	defer w.leave()
	defer w.server.open.join(&w.position)()
	created := clientv3.WatchResponse{Header: w.server.header(w.server.revision()), Created: true}
	if w.op.IsCreatedNotify() && !w.send(ctx, created) {
		return
	}
	w.run(ctx)
}

func (w *watch) run(ctx context.Context) {
	for {
		changed, ok := w.advance(ctx)
		if !ok {
			return
		}
		w.scheduleReport()
		select {
		case <-changed:
		case <-w.reportDue:
			w.reportDue = nil
			if revision := w.server.revision(); revision > w.reported {
				w.wanted = revision
			}
		case <-w.requested:
			w.wanted = w.server.revision()
		case <-ctx.Done():
			return
		case <-w.server.stop:
			return
		}
	}
}

// scheduleReport schedules a periodic report for a watcher that wants them, unless the watcher already has the revision of the store:
// every report passes through all layers between the store and the clients, and on an idle store this would be most of the work.
func (w *watch) scheduleReport() {
	if w.reportDue == nil && w.op.IsProgressNotify() && w.server.revision() > w.reported {
		w.reportDue = w.server.clock.After(w.server.progressInterval)
	}
}

// advance sends the available changes. It returns a channel that is closed once there are more, and false when the watch
// is over.
func (w *watch) advance(ctx context.Context) (<-chan struct{}, bool) {
	for {
		r := w.server.feed.from(w.next)
		if w.next <= r.compacted {
			w.send(ctx, w.compactedResponse(r.compacted))
			return nil, false
		}
		if w.next > r.head {
			return r.changed, w.report(ctx)
		}
		events, reached := r.events, r.head
		if !r.complete {
			var err error
			if events, reached, err = w.server.reader.history(w.next, w.span); err != nil {
				w.fail(ctx, err)
				return nil, false
			}
		}
		if !w.deliver(ctx, events, reached) {
			return nil, false
		}
	}
}

// deliver sends the changes of the span and advances the watch past reached.
func (w *watch) deliver(ctx context.Context, events []*mvccpb.Event, reached int64) bool {
	if selected := w.selectEvents(events); len(selected) > 0 {
		if !w.send(ctx, clientv3.WatchResponse{Header: w.server.header(reached), Events: selected}) {
			return false
		}
		w.reported = reached
	}
	w.next = reached + 1
	w.position.revision.Store(reached)
	return w.report(ctx)
}

func (w *watch) selectEvents(events []*mvccpb.Event) (selected []*clientv3.Event) {
	for _, event := range events {
		deleted := event.Type == mvccpb.Event_DELETE
		unwanted := deleted && w.op.IsFilterDelete() || !deleted && w.op.IsFilterPut()
		if unwanted || !w.span.contains(event.Kv.Key) {
			continue
		}
		if !w.op.IsPrevKV() && event.PrevKv != nil {
			event = &mvccpb.Event{Type: event.Type, Kv: event.Kv}
		}
		selected = append(selected, event)
	}
	return selected
}

// report sends the progress of the watch if it was requested and the watch has reached the revision that the store had at
// the request.
func (w *watch) report(ctx context.Context) bool {
	if w.wanted == 0 || w.next <= w.wanted {
		return true
	}
	// A watch from a future revision has seen nothing that lies before it.
	reached := min(w.next-1, w.server.revision())
	w.wanted, w.reported = 0, reached
	return w.send(ctx, clientv3.WatchResponse{Header: w.server.header(reached)})
}

func (w *watch) compactedResponse(compacted int64) clientv3.WatchResponse {
	return clientv3.WatchResponse{Header: w.server.header(w.server.revision()), CompactRevision: compacted, Canceled: true}
}

// fail ends the watch with an error.
func (w *watch) fail(ctx context.Context, err error) {
	if errors.Is(err, rpctypes.ErrCompacted) {
		// The feed may not know of the compaction yet, and a client takes a revision that is not compacted for a future one.
		_, compacted := w.server.feed.revisions()
		w.send(ctx, w.compactedResponse(max(compacted, w.next)))
		return
	}
	w.send(ctx, clientv3.WatchResponse{Header: w.server.header(w.server.revision()), Canceled: true, CancelReason: err.Error()})
}

// send waits for the reader. It returns false when the watch is over.
func (w *watch) send(ctx context.Context, response clientv3.WatchResponse) bool {
	select {
	case w.out <- response:
		return true
	case <-ctx.Done():
		return false
	case <-w.server.stop:
		return false
	}
}
