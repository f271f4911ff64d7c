// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// batchKeys is the maximum number of keys in a transaction: etcd's default of --max-txn-ops.
	batchKeys = 128

	// batchBytes bounds the size of the keys and values in a transaction, to stay below etcd's default request limit of
	// 1.5 MiB. A larger value is written alone.
	batchBytes = 1 << 20
)

// copier writes keys of one section to another store.
type copier struct {
	from, to Section
	leases   map[int64]clientv3.LeaseID

	compares []clientv3.Cmp
	puts     []clientv3.Op
	bytes    int

	// copied is the number of written keys, expired that of keys whose lease has expired.
	copied, expired int64
}

func newCopier(from, to Section) *copier {
	return &copier{from: from, to: to, leases: map[int64]clientv3.LeaseID{}}
}

// add adds a key to the batch, and writes the batch before if the key does not fit. revision is the revision of the key
// in the target, 0 if it is missing.
func (c *copier) add(ctx context.Context, kv *mvccpb.KeyValue, revision int64) error {
	size := len(kv.Key) + len(kv.Value)
	if len(c.puts) == batchKeys || c.bytes+size > batchBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	var options []clientv3.OpOption
	if kv.Lease != 0 {
		lease, err := c.lease(ctx, kv.Lease)
		if err != nil {
			return err
		}
		if lease == clientv3.NoLease {
			c.expired++
			return nil
		}
		options = append(options, clientv3.WithLease(lease))
	}
	key := string(kv.Key)
	// A concurrent write of the key must not be overwritten.
	c.compares = append(c.compares, clientv3.Compare(clientv3.ModRevision(key), "=", revision))
	c.puts = append(c.puts, clientv3.OpPut(key, string(kv.Value), options...))
	c.bytes += size
	return nil
}

// lease returns the target's lease for one of the source, with its remaining time to live, or NoLease if it has expired.
func (c *copier) lease(ctx context.Context, id int64) (clientv3.LeaseID, error) {
	if lease, found := c.leases[id]; found {
		return lease, nil
	}
	left, err := c.from.timeLeft(ctx, id)
	if err != nil || left <= 0 {
		return clientv3.NoLease, err
	}
	granted, err := c.to.Client.Grant(ctx, left)
	if err != nil {
		return clientv3.NoLease, fmt.Errorf("granting a lease of %d seconds: %w", left, err)
	}
	c.leases[id] = granted.ID
	return granted.ID, nil
}

// timeLeft returns the remaining time to live of a lease in seconds, 0 or less if it has expired.
func (s Section) timeLeft(ctx context.Context, id int64) (int64, error) {
	response, err := s.Client.TimeToLive(ctx, clientv3.LeaseID(id))
	if err != nil {
		return 0, fmt.Errorf("reading the time left of lease %x: %w", id, err)
	}
	return response.TTL, nil
}

// flush writes the batch.
func (c *copier) flush(ctx context.Context) error {
	if len(c.puts) == 0 {
		return nil
	}
	first := c.puts[0]
	response, err := c.to.Client.Txn(ctx).If(c.compares...).Then(c.puts...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("writing %q of %d bytes: %w: start etcd with --max-request-bytes=2097152", first.KeyBytes(),
			len(first.ValueBytes()), err)
	case err != nil:
		return fmt.Errorf("writing %d keys from %q on: %w", len(c.puts), first.KeyBytes(), err)
	case !response.Succeeded:
		return fmt.Errorf("%w: one of the %d keys from %q on was written meanwhile", ErrTargetChanged, len(c.puts), first.KeyBytes())
	}
	c.copied += int64(len(c.puts))
	c.compares, c.puts, c.bytes = nil, nil, 0
	return nil
}
