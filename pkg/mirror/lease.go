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
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
)

// Leases configure the Leases of branches.
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

// releaseTimeout bounds the release of a Lease, which otherwise expires. A leader that stops releases the Leases of its branches.
const releaseTimeout = controller.DrainTimeout

// branchLease is the Lease of one branch, whose holder may push. A push acquires it and later pushes renew it, so that idle
// branches cost nothing. It avoids races between independent installations; the compare-and-swap of the push is what
// guarantees that none is lost. Within an installation the leader writes: a new leader takes over the Leases of the old one.
// It is not safe for concurrent use.
type branchLease struct {
	lock  *resourcelock.LeaseLock
	times Leases
	// renewed is when this process last wrote the Lease; zero if it is not held.
	renewed time.Time
	// holder is the last known holder.
	holder string
	// seen is the Lease of another holder, unchanged since seenAt.
	seen   []byte
	seenAt time.Time
}

// newBranchLease returns the Lease of a branch, whose name is derived from the repository's URL and the branch.
func newBranchLease(client coordinationv1.LeasesGetter, installation string, times Leases, key branchKey) *branchLease {
	sum := sha256.Sum256([]byte(canonicalURL(key.url) + "\n" + key.branch))
	return &branchLease{times: times, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: times.Namespace, Name: "slipstream-branch-" + hex.EncodeToString(sum[:10])},
		Client:     client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: installation},
		Labels:     map[string]string{"app.kubernetes.io/managed-by": "slipstream"},
	}}
}

// leaseHeldError is returned if another installation holds the Lease.
type leaseHeldError struct {
	error
	// until is when to retry at the latest.
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

// renewUntil renews the Lease during a long push.
func (l *branchLease) renewUntil(ctx context.Context) {
	for {
		select {
		case <-time.After(l.times.Renew):
		case <-ctx.Done():
			return
		}
		if err := l.hold(ctx); err != nil && ctx.Err() == nil {
			leaseAcquireFailures.Inc()
			klog.FromContext(ctx).Error(err, "Failed to renew lease during push", "lease", l.lock.Describe())
		}
	}
}

// hold acquires or renews the Lease unless it was renewed recently.
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

// record returns the content of the Lease as this process holds it.
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

// keptUntil returns until when another holder has the branch. Its clock may be ahead of ours: a Lease that has not changed
// for its duration has expired, whatever its times are.
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

// release releases the Lease if it is held and has not expired.
func (l *branchLease) release(ctx context.Context) {
	if l.renewed.IsZero() || time.Since(l.renewed) > l.times.Duration {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record := l.record(time.Now(), nil)
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	if err := l.lock.Update(ctx, record); err != nil {
		klog.FromContext(ctx).V(2).Info("Failed to release lease", "lease", l.lock.Describe(), "reason", err.Error())
	}
	l.renewed = time.Time{}
}

// remove deletes the Lease of a branch that this installation no longer writes, unless another one holds it. If that fails, as without the
// permission to delete Leases, the Lease is released.
func (l *branchLease) remove(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	leases := l.lock.Client.Leases(l.lock.LeaseMeta.Namespace)
	lease, err := leases.Get(bounded, l.lock.LeaseMeta.Name, metav1.GetOptions{})
	if err == nil {
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); holder != "" && holder != l.lock.Identity() {
			return
		}
		err = leases.Delete(bounded, lease.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
		})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(2).Info("Failed to delete lease, releasing it", "lease", l.lock.Describe(), "reason", err.Error())
		l.release(ctx)
	}
	l.renewed = time.Time{}
}
