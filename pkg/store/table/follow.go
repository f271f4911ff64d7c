// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// errNoWatcher is returned for a store without WithWatcher.
var errNoWatcher = errors.New("store cannot be watched")

// errWatchEnded is returned when a watch ends without a reason.
var errWatchEnded = errors.New("watch ended")

// WithWatcher lets tables be followed. The watcher must be that of the store's kv.
func WithWatcher(watcher clientv3.Watcher) Option {
	return func(s *Store) { s.watcher = watcher }
}

// Notification is one notification of Follow.
type Notification struct {
	// Rows are new or changed rows.
	Rows []Row
	// Listed is set when Rows are all rows of the table, after a list. Otherwise they come from a watch.
	Listed bool
	// Unopened are the errors of rows that cannot be decrypted. These are not in Rows.
	Unopened []error
}

// Follow lists the rows and then watches for puts, in their order and without a gap in between. It does not report
// deletions. When the store has compacted revisions that were not sent yet, it lists again. It ends when its reader stops,
// or with an error of ctx or of the store.
func (t *Table) Follow(ctx context.Context) iter.Seq2[Notification, error] {
	return func(yield func(Notification, error) bool) {
		if t.store.watcher == nil {
			yield(Notification{}, errNoWatcher)
			return
		}
		// Without this a watch of an etcd member that has lost the others would be silent.
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		for {
			notification, revision, err := t.list(ctx)
			if errors.Is(err, rpctypes.ErrCompacted) {
				continue
			}
			if err != nil || !yield(notification, nil) {
				t.end(yield, err)
				return
			}
			err = t.watch(ctx, revision+1, yield)
			if !errors.Is(err, rpctypes.ErrCompacted) {
				t.end(yield, err)
				return
			}
		}
	}
}

// end yields an error that is not nil.
func (t *Table) end(yield func(Notification, error) bool, err error) {
	if err != nil {
		yield(Notification{}, fmt.Errorf("following rows of %s: %w", t.prefix, err))
	}
}

// list returns the rows of one revision, and the revision.
func (t *Table) list(ctx context.Context) (Notification, int64, error) {
	notification := Notification{Listed: true}
	var revision int64
	for start, end := t.prefix, clientv3.GetPrefixRangeEnd(t.prefix); ; {
		page, err := t.store.kv.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(scanRows), clientv3.WithRev(revision))
		if err != nil {
			return Notification{}, 0, err
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		for _, kv := range page.Kvs {
			t.addRow(ctx, &notification, kv)
		}
		if !page.More {
			return notification, revision, nil
		}
		start = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// watch yields the rows that are put from a revision on. It returns nil when the reader stops.
func (t *Table) watch(ctx context.Context, revision int64, yield func(Notification, error) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // etcd's client would keep a stream open for a watch that never begins
	}
	watch := t.store.watcher.Watch(ctx, t.prefix, clientv3.WithPrefix(), clientv3.WithRev(revision), clientv3.WithFilterDelete())
	for response := range watch {
		if err := response.Err(); err != nil {
			return err
		}
		var notification Notification
		for _, event := range response.Events {
			t.addRow(ctx, &notification, event.Kv)
		}
		if (len(notification.Rows) > 0 || len(notification.Unopened) > 0) && !yield(notification, nil) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errWatchEnded
}

// addRow adds the row of a key to a notification.
func (t *Table) addRow(ctx context.Context, notification *Notification, kv *mvccpb.KeyValue) {
	key := string(kv.Key)
	plain, err := t.store.decrypt(ctx, key, kv.Value)
	if err != nil {
		notification.Unopened = append(notification.Unopened, err)
		return
	}
	notification.Rows = append(notification.Rows, Row{Key: key[len(t.prefix):], Value: plain})
}
