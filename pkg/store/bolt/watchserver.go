// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/utils/clock"
)

// watchServer serves the watches of a store.
type watchServer struct {
	identity uint64
	// feed has the newest changes, reader the history before them.
	feed   *feed
	reader *reader
	clock  clock.WithTicker
	// progressInterval is the interval of progress notifications for a watch that requested them.
	progressInterval time.Duration
	progress         *progressHub
	// open has the watches that are being served.
	open *watchSet
	// stop ends all watches.
	stop <-chan struct{}
}

// newWatch returns a watch that, once served, sends every change that is committed
// from now on or, if the operation says so, from an earlier or later revision.
func (s *watchServer) newWatch(op clientv3.Op, group string, out chan<- clientv3.WatchResponse) *watch {
	w := &watch{server: s, op: op, span: newSpan(op.KeyBytes(), op.RangeBytes()), out: out, next: op.Rev()}
	w.requested, w.leave = s.progress.join(group)
	if w.next == 0 {
		w.next = s.revision() + 1
	}
	w.position.revision.Store(w.next - 1)
	return w
}

// revision returns the last committed revision.
func (s *watchServer) revision() int64 {
	head, _ := s.feed.revisions()
	return head
}

func (s *watchServer) header(revision int64) *pb.ResponseHeader {
	return newHeader(s.identity, revision)
}
