// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// maxLeaseTTL, in seconds, is etcd's own limit.
const maxLeaseTTL = 9_000_000_000

// errNotDue says that a lease was kept alive after it had been found to be due.
var errNotDue = errors.New("lease is not due")

// Grant creates a lease of the asked time to live in seconds, at least one. It
// chooses the lease's number when none is given.
func (e *Engine) Grant(ctx context.Context, r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	if r.TTL > maxLeaseTTL {
		return nil, rpctypes.ErrLeaseTTLTooLarge
	}
	change := &leaseGrant{id: r.ID, ttl: max(r.TTL, 1)}
	if err := e.committer.commit(ctx, change, 0); err != nil {
		return nil, err
	}
	return &pb.LeaseGrantResponse{Header: e.header(e.Revision()), ID: change.id, TTL: change.ttl}, nil
}

// Revoke ends a lease and deletes the keys attached to it, in one revision.
func (e *Engine) Revoke(ctx context.Context, r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	if err := e.committer.commit(ctx, &leaseEnd{id: r.ID}, 0); err != nil {
		return nil, err
	}
	return &pb.LeaseRevokeResponse{Header: e.header(e.Revision())}, nil
}

// KeepAlive starts a lease's time to live anew. The new expiry is on disk when it
// returns. It fails with rpctypes.ErrLeaseNotFound.
func (e *Engine) KeepAlive(ctx context.Context, id int64) (*pb.LeaseKeepAliveResponse, error) {
	change := &leaseRenewal{id: id}
	if err := e.committer.commit(ctx, change, 0); err != nil {
		return nil, err
	}
	return &pb.LeaseKeepAliveResponse{Header: e.header(e.Revision()), ID: id, TTL: change.ttl}, nil
}

// TimeToLive tells the seconds that a lease has left, -1 if there is no such
// lease, and its keys if the request asks for them.
func (e *Engine) TimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	if err := usable(ctx, e.stop); err != nil {
		return nil, err
	}
	response := &pb.LeaseTimeToLiveResponse{ID: r.ID, TTL: -1}
	err := e.reader.view(func(s snapshot) error {
		response.Header = e.header(s.revision)
		term, found := e.leases.get(r.ID)
		if !found {
			return nil
		}
		response.GrantedTTL = term.ttl
		response.TTL = max(0, int64(term.deadline.Sub(e.options.Clock.Now())/time.Second))
		if r.Keys {
			response.Keys = s.attachedKeys(r.ID)
		}
		return nil
	})
	return response, err
}

// Leases lists the leases there are.
func (e *Engine) Leases(ctx context.Context) (*pb.LeaseLeasesResponse, error) {
	if err := usable(ctx, e.stop); err != nil {
		return nil, err
	}
	response := &pb.LeaseLeasesResponse{Header: e.header(e.Revision())}
	for _, id := range e.leases.ids() {
		response.Leases = append(response.Leases, &pb.LeaseStatus{ID: id})
	}
	return response, nil
}

// leaseKey names the attachment of a key to a lease.
func leaseKey(lease int64, key []byte) []byte {
	return append(putInt64(lease), key...)
}

// attachedKeys copies out the keys of a lease, in order.
func (s snapshot) attachedKeys(lease int64) (keys [][]byte) {
	prefix := putInt64(lease)
	cursor := s.leaseKeys.Cursor()
	for name, _ := cursor.Seek(prefix); bytes.HasPrefix(name, prefix); name, _ = cursor.Next() {
		keys = append(keys, bytes.Clone(name[len(prefix):]))
	}
	return keys
}

// leaseGrant creates a lease.
type leaseGrant struct {
	id, ttl int64
}

func (g *leaseGrant) check(w *writer) error {
	if g.id != 0 {
		if w.leases.Get(putInt64(g.id)) != nil {
			return rpctypes.ErrLeaseExist
		}
		return nil
	}
	for g.id == 0 || w.leases.Get(putInt64(g.id)) != nil {
		g.id = rand.Int64() //nolint:gosec // A number that is not in use, not a secret.
	}
	return nil
}

func (g *leaseGrant) write(w *writer) error {
	return w.setLease(g.id, g.ttl)
}

// leaseRenewal starts the time to live of a lease anew.
type leaseRenewal struct {
	id, ttl int64
}

func (r *leaseRenewal) check(w *writer) error {
	record := w.leases.Get(putInt64(r.id))
	if record == nil {
		return rpctypes.ErrLeaseNotFound
	}
	r.ttl, _ = decodeLease(record)
	return nil
}

func (r *leaseRenewal) write(w *writer) error {
	return w.setLease(r.id, r.ttl)
}

// leaseEnd removes a lease and its keys. With an expiry it does so only if that
// is still when the lease ends.
type leaseEnd struct {
	id, expiry int64
}

func (l *leaseEnd) check(w *writer) error {
	record := w.leases.Get(putInt64(l.id))
	if record == nil {
		return rpctypes.ErrLeaseNotFound
	}
	if _, expiry := decodeLease(record); l.expiry != 0 && l.expiry != expiry {
		return errNotDue
	}
	return nil
}

func (l *leaseEnd) write(w *writer) error {
	for _, key := range w.attachedKeys(l.id) {
		held := w.lookup(key)
		if held == nil || held.Lease != l.id {
			// Damage, which must not keep the lease and its other keys for ever.
			if err := w.moveLease(key, l.id, 0); err != nil {
				return err
			}
			continue
		}
		if err := w.remove(held); err != nil {
			return err
		}
	}
	return w.dropLease(l.id)
}
