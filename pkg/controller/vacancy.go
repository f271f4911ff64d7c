// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// pollInterval is how often a process that does not lead reads the Lease while it cannot watch it.
const pollInterval = 2 * time.Second

// vacancy observes the Lease until an election can succeed at once. An elector alone would read it once in one to two retry periods, and
// would count its duration from such a read.
type vacancy struct {
	lease Lease
	lock  resourcelock.Interface
	// record and raw are the Lease as last observed, if it exists, and changed is when raw was first observed. The clocks of two
	// machines are not compared.
	record  *resourcelock.LeaderElectionRecord
	raw     []byte
	changed time.Time
	absent  bool
	// reported is set when a failure to watch has been logged.
	reported bool
}

// awaitVacancy returns once the Lease can be acquired: it does not exist, was released, has the identity of this process, or has not
// changed for its duration. In the last case it returns the Lease as its leader left it.
func awaitVacancy(ctx context.Context, lease Lease) (expired []byte, err error) {
	v := &vacancy{lease: lease, lock: lease.NewLock()}
	v.read(ctx)
	for !v.free() {
		if err := ctx.Err(); err != nil {
			return nil, err //nolint:wrapcheck // the caller's own
		}
		v.follow(ctx)
	}
	return v.expired(), nil
}

// follow observes the Lease until it is free. It returns pollInterval after the watch of it has failed or ended, and when ctx is done.
func (v *vacancy) follow(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events := v.watch(ctx)
	v.read(ctx) // The watch has begun before, so no change is missed between them.
	for !v.free() {
		timer := time.NewTimer(v.wait(events != nil))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			if events == nil {
				return
			}
			if v.record == nil {
				v.read(ctx)
			}
		case event, open := <-events:
			timer.Stop()
			if !open || !v.observe(event) {
				events = nil
			}
			if v.free() {
				v.read(ctx) // The event may be older than the last read.
			}
		}
	}
}

// watch starts a watch of the Lease. It returns nil if that fails, which leaves reads.
func (v *vacancy) watch(ctx context.Context) <-chan watch.Event {
	if v.lease.Watch == nil {
		return nil
	}
	w, err := v.lease.Watch(ctx)
	if err == nil {
		context.AfterFunc(ctx, w.Stop)
		return w.ResultChan()
	}
	if ctx.Err() == nil && !v.reported {
		v.reported = true
		klog.FromContext(ctx).Error(err, "Failed to watch the leader Lease, reading it instead", "interval", pollInterval)
	}
	return nil
}

// read reads the Lease. If that fails, the observed state does not change.
func (v *vacancy) read(ctx context.Context) {
	record, raw, err := v.lock.Get(ctx)
	switch {
	case err == nil:
		v.set(record, raw)
	case apierrors.IsNotFound(err):
		v.set(nil, nil)
		v.absent = true
	}
}

// observe applies an event of the watch. It returns false if the event ends the watch.
func (v *vacancy) observe(event watch.Event) bool {
	lease, isLease := event.Object.(*coordinationv1.Lease)
	switch {
	case event.Type == watch.Bookmark:
		return true
	case !isLease:
		return false
	case event.Type == watch.Deleted:
		v.set(nil, nil)
		v.absent = true
		return true
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(record) // as a LeaseLock
	if err != nil {
		return false
	}
	v.set(record, raw)
	return true
}

func (v *vacancy) set(record *resourcelock.LeaderElectionRecord, raw []byte) {
	if v.record == nil || !bytes.Equal(raw, v.raw) {
		v.changed = time.Now()
	}
	v.record, v.raw, v.absent = record, raw, false
}

// free reports whether an election can succeed at once.
func (v *vacancy) free() bool {
	if v.record == nil {
		return v.absent
	}
	return v.record.HolderIdentity == "" || v.record.HolderIdentity == v.lock.Identity() || v.remaining() <= 0
}

// remaining returns how long the Lease still excludes other processes if it does not change.
func (v *vacancy) remaining() time.Duration {
	return time.Until(v.changed.Add(time.Duration(v.record.LeaseDurationSeconds) * time.Second))
}

// wait returns the longest time until the state has to be checked without an event.
func (v *vacancy) wait(watching bool) time.Duration {
	switch {
	case v.record == nil:
		return pollInterval
	case watching:
		return v.remaining()
	}
	return min(pollInterval, v.remaining())
}

// expired returns the Lease if its leader has let it expire.
func (v *vacancy) expired() []byte {
	if v.record == nil || v.record.HolderIdentity == "" || v.record.HolderIdentity == v.lock.Identity() {
		return nil
	}
	return v.raw
}
