// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"k8s.io/utils/clock"
)

// expiryRetry is how long the expirer waits after it could not expire a lease.
const expiryRetry = time.Second

// leaseExpirer ends leases whose time to live has passed, in its goroutine, run.
type leaseExpirer struct {
	committer *committer
	leases    *leaseTable
	clock     clock.Clock
	logger    logr.Logger
	// stop ends the goroutine.
	stop <-chan struct{}
}

// run expires leases until stop is closed.
func (x *leaseExpirer) run() {
	for {
		wait := x.expire()
		timer := x.clock.NewTimer(wait)
		select {
		case <-x.stop:
			timer.Stop()
			return
		case <-x.leases.changed:
			timer.Stop()
		case <-timer.C():
		}
	}
}

// expire ends the leases that are due, and returns the time to the next deadline.
func (x *leaseExpirer) expire() time.Duration {
	due, next := x.leases.due()
	for id, expiry := range due {
		err := x.committer.commit(context.Background(), &leaseEnd{id: id, expiry: expiry}, 0)
		if err == nil || errors.Is(err, errNotDue) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
			continue
		}
		if !errors.Is(err, ErrClosed) {
			x.logger.Error(err, "Failed to expire a lease, will retry", "lease", id)
		}
		return expiryRetry
	}
	return next
}
