// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
)

const (
	// padders is the number of concurrent writers. etcd syncs once for all pending requests, so the rate grows with their
	// number; a single one waits for the disk on each write.
	padders = 256

	// compactedPadding is the number of writes after which their history is compacted: etcd keeps all of it and rejects
	// writes once its quota is exceeded.
	compactedPadding = 100_000
)

// padTo raises an etcd's revision by writing repeatedly to a dedicated key: each transaction raises it by one. The
// revision may end up higher by the number of padders.
func padTo(ctx context.Context, client *clientv3.Client, key string, target int64, report *Reporter) error {
	response, err := client.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading etcd's revision: %w", err)
	}
	begin := response.Header.Revision
	var reached atomic.Int64
	reached.Store(begin)
	group, ctx := errgroup.WithContext(ctx)
	for range padders {
		group.Go(func() error {
			for reached.Load() < target {
				put, err := client.Put(ctx, key, "")
				if err != nil {
					return err
				}
				if err := padded(ctx, client, &reached, put.Header.Revision); err != nil {
					return err
				}
				report.step("raising the revision", reached.Load()-begin, target-begin)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("raising etcd's revision: %w", err)
	}
	return nil
}

// padded records a reached revision, and compacts the history at every compactedPadding revisions.
func padded(ctx context.Context, client *clientv3.Client, reached *atomic.Int64, revision int64) error {
	for {
		known := reached.Load()
		if known >= revision || reached.CompareAndSwap(known, revision) {
			break
		}
	}
	if revision%compactedPadding != 0 {
		return nil
	}
	return compact(ctx, client, revision)
}

// compact compacts the history up to a revision, unless that was done before.
func compact(ctx context.Context, client *clientv3.Client, revision int64) error {
	_, err := client.Compact(ctx, revision)
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compacting to revision %d: %w", revision, err)
	}
	return nil
}
