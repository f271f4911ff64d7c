// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Leases are the place and the times of the Leases that branches are written under.
type Leases struct {
	// Duration (--leases-lease-sec, 24 s) is how long after its last renewal a Lease keeps
	// others from the branch.
	Duration time.Duration
	// Namespace (--leases-namespace, the server's own) is where the Leases are. Installations that write the same branches
	// have it in common.
	Namespace string
	// Renew (--leases-renew-sec, 8 s) is the age at which a Lease that is in use is renewed.
	Renew time.Duration
}

// releaseTimeout bounds the giving back of a Lease, which also runs out by itself.
const releaseTimeout = 2 * time.Second

// branchLease is the Lease of one branch: who holds it may push. It is taken with a push and
// renewed by those that follow, so that branches to which nothing happens cost nothing. It
// spares installations that know nothing of each other a race; that no push is lost to one
// is the compare-and-swap's doing. Within an installation the leader Lease decides who writes:
// a new leader goes on with the Leases of the old one. It is for one goroutine.
type branchLease struct {
	lock  *resourcelock.LeaseLock
	times Leases
	// renewed is when the Lease was last written by this process; zero when it is not held.
	renewed time.Time
	// holder is who held the Lease when it was last looked at.
	holder string
	// seen is the Lease of another holder, unchanged since seenAt.
	seen   []byte
	seenAt time.Time
}

// newBranchLease names the Lease by the repository's address and the branch.
func newBranchLease(client coordinationv1.LeasesGetter, installation string, times Leases, key branchKey) *branchLease {
	sum := sha256.Sum256([]byte(canonicalURL(key.url) + "\n" + key.branch))
	return &branchLease{times: times, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: times.Namespace, Name: "slipstream-branch-" + hex.EncodeToString(sum[:10])},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: installation},
		Labels:     map[string]string{"app.kubernetes.io/managed-by": "slipstream"},
	}}
}

// leaseHeldError says that another installation may push.
type leaseHeldError struct {
	error
	// until is when to ask again at the latest.
	until time.Time
}

func (e leaseHeldError) Unwrap() error { return e.error }

// during calls push while the Lease is held.
func (l *branchLease) during(ctx context.Context, push func(context.Context) error) error {
	if err := l.hold(ctx); err != nil {
		leaseAcquireFailures.Inc()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	group.StartWithContext(ctx, l.renewUntil)
	return push(ctx)
}

// renewUntil keeps the Lease while a push takes long.
func (l *branchLease) renewUntil(ctx context.Context) {
	for {
		select {
		case <-time.After(l.times.Renew):
		case <-ctx.Done():
			return
		}
		if err := l.hold(ctx); err != nil && ctx.Err() == nil {
			leaseAcquireFailures.Inc()
			klog.FromContext(ctx).Error(err, "Lease could not be renewed during a push", "lease", l.lock.Describe())
		}
	}
}

// hold takes or renews the Lease unless that has just been done.
func (l *branchLease) hold(ctx context.Context) error {
	now := time.Now()
	if !l.renewed.IsZero() && now.Sub(l.renewed) < l.times.Renew {
		return nil
	}
	l.renewed = time.Time{}
	before, raw, err := l.lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		err = l.lock.Create(ctx, l.record(now, nil))
	case err == nil:
		if until := l.keptUntil(before, raw, now); until.After(now) {
			l.holder = before.HolderIdentity
			return leaseHeldError{until: earliest(until, now.Add(l.times.Renew)), error: refused(v1alpha1.ReasonLeaseHeldElsewhere,
				"%s writes the branch; its Lease %s runs out unless it is renewed", before.HolderIdentity, l.lock.Describe())}
		}
		err = l.lock.Update(ctx, l.record(now, before))
	}
	if err != nil {
		return fmt.Errorf("take Lease %s of the branch: %w", l.lock.Describe(), err)
	}
	l.renewed, l.holder, l.seen = now, l.lock.Identity(), nil
	return nil
}

// record is the Lease as this process holds it.
func (l *branchLease) record(now time.Time, before *resourcelock.LeaderElectionRecord) resourcelock.LeaderElectionRecord {
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: l.lock.Identity(), LeaseDurationSeconds: int(l.times.Duration.Seconds()),
		AcquireTime: metav1.NewTime(now), RenewTime: metav1.NewTime(now),
	}
	if before != nil {
		record.LeaderTransitions = before.LeaderTransitions + 1
		if before.HolderIdentity == record.HolderIdentity {
			record.AcquireTime, record.LeaderTransitions = before.AcquireTime, before.LeaderTransitions
		}
	}
	return record
}

// keptUntil returns until when somebody else has the branch. Their clock may be ahead of
// ours: a Lease that has not changed for its duration has run out, whatever it says.
func (l *branchLease) keptUntil(record *resourcelock.LeaderElectionRecord, raw []byte, now time.Time) time.Time {
	if record.HolderIdentity == "" || record.HolderIdentity == l.lock.Identity() {
		return time.Time{}
	}
	if !bytes.Equal(raw, l.seen) {
		l.seen, l.seenAt = raw, now
	}
	duration := time.Duration(record.LeaseDurationSeconds) * time.Second
	return earliest(record.RenewTime.Add(duration), l.seenAt.Add(duration))
}

// release gives the Lease back, if it is held and has not run out.
func (l *branchLease) release(ctx context.Context) {
	if l.renewed.IsZero() || time.Since(l.renewed) > l.times.Duration {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record := l.record(time.Now(), nil)
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	if err := l.lock.Update(ctx, record); err != nil {
		klog.FromContext(ctx).V(2).Info("Lease was not given back and runs out", "lease", l.lock.Describe(), "reason", err.Error())
	}
	l.renewed = time.Time{}
}
