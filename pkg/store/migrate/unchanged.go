// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// progressInterval is the interval at which a watch is requested to report its progress.
	progressInterval = 50 * time.Millisecond
	// watchTimeout bounds the check for changes.
	watchTimeout = time.Minute
)

// unchanged returns an error if a section has changed since the view was taken, except for keys whose lease has expired.
func (v view) unchanged(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	now, err := v.Client.Get(ctx, v.Prefix, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("reading the revision of the %s: %w", v.Name, err)
	}
	if now.Header.Revision == v.revision {
		return nil
	}
	changes := v.Client.Watch(ctx, v.Prefix, clientv3.WithPrefix(), clientv3.WithRev(v.revision+1), clientv3.WithPrevKV())
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		_ = v.Client.RequestProgress(ctx) // The request is repeated.
	}, progressInterval)
	for response := range changes {
		if err := response.Err(); err != nil {
			return fmt.Errorf("looking for changes of the %s since revision %d: %w", v.Name, v.revision, err)
		}
		for _, event := range response.Events {
			if !isExpiry(event) {
				return fmt.Errorf("%w: %q changed at revision %d, while it was copied as of %d: stop all servers, and run the migration again",
					ErrSourceChanged, event.Kv.Key, event.Kv.ModRevision, v.revision)
			}
		}
		if response.Header.Revision >= now.Header.Revision {
			return nil
		}
	}
	return fmt.Errorf("looking for changes of the %s: %w", v.Name, context.Cause(ctx))
}

// isExpiry reports whether an event may be the expiry of a key's lease.
func isExpiry(event *clientv3.Event) bool {
	return event.Type == mvccpb.Event_DELETE && event.PrevKv != nil && event.PrevKv.Lease != 0
}
