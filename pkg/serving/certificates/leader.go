// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

// Leader does the work of one replica for all, while that replica leads.
type Leader struct {
	controller     *Controller
	reporter       reporter
	changeDetector changeDetector
	// handover is the transition to an authority that the leader created and that is not in the Secret yet.
	handover handover
	// unneeded is the time since which an authority in a bundle was not needed by this leader.
	unneeded map[string]time.Time
}

// NewLeader returns the Leader for a replica's Controller.
func NewLeader(controller *Controller) *Leader {
	return &Leader{
		controller: controller, handover: handover{name: controller.name}, unneeded: map[string]time.Time{},
		changeDetector: newChangeDetector(controller.watches, controller.config.Source),
	}
}

// Name is "serving-certificate".
func (l *Leader) Name() string { return "serving-certificate" }

// Run syncs as necessary until ctx is done. Failures are retried.
func (l *Leader) Run(ctx context.Context) error {
	term := NewLeader(l.controller)
	every(ctx, l.controller.config.Clock, func() {
		if !term.idle(l.controller.config.Clock.Now()) {
			term.RunOnce(ctx)
		}
	})
	return nil
}

// idle reports whether a sync would change nothing, as far as that is known without a request to the cluster.
func (l *Leader) idle(now time.Time) bool {
	return l.handover.next == nil && !l.reporter.failing() && l.changeDetector.quiet(now)
}

// RunOnce syncs once. Failures are logged and counted.
func (l *Leader) RunOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(logredact.WithoutBodies(ctx), syncTimeout)
	defer cancel()
	now := l.controller.config.Clock.Now()
	l.changeDetector.begin(now)
	var failure error
	if own, isOwn := l.controller.config.Source.(*OwnAuthority); isOwn {
		failure = l.replace(ctx, own, now)
	}
	if failure == nil {
		// Remove nothing after a failure: other replicas may still use their authorities.
		failure = l.tidy(ctx, now)
	}
	l.reporter.report(ctx, "Failed to update the authorities of the serving certificate, will retry", failure)
}

// replace creates another authority if the server's own is old, missing or for other names, and stores it in the Secret
// once the cluster trusts it.
func (l *Leader) replace(ctx context.Context, own *OwnAuthority, now time.Time) error {
	secret, found, err := own.read(ctx)
	if err != nil {
		return err
	}
	if found != nil && (!found.ours() || !due(found.leaf(), now) && found.permits(own.Names, now) == nil) {
		l.handover.to(nil, now)
		return nil
	}
	if err := l.propose(own, now); err != nil {
		return err
	}
	next := l.handover.next
	trusts, err := l.controller.registrations.change(ctx, now, func(held []*x509.Certificate) []*x509.Certificate {
		return withAuthorities(held, next.authorities, now)
	})
	shown, _ := l.controller.state()
	if !l.handover.safe(shown, trusts, now) {
		return err
	}
	bundle := withAuthorities(l.controller.needed(), next.authorities, now)
	return errors.Join(err, own.store(ctx, secret, next.signer, encodeBundle(bundle)))
}

// propose creates the next authority for the Secret, unless there is one.
func (l *Leader) propose(own *OwnAuthority, now time.Time) error {
	if next := l.handover.next; next != nil && !due(next.signer.leaf(), now) && !due(next.leaf(), now) {
		return nil
	}
	made, err := newAuthority(own.Names, now, own.AuthorityLifetime)
	if err != nil {
		return err
	}
	next, err := made.sign(own.Names, now, own.AuthorityLifetime)
	if err == nil {
		l.handover.to(next, now)
	}
	return err
}

// retire returns the edit that removes expired authorities, and those unneeded for so long that no replica serves their
// certificates.
func (l *Leader) retire(now time.Time) edit {
	needed, hold := l.controller.needed(), l.controller.config.Source.hold()
	if next := l.handover.next; next != nil {
		needed = append(needed, next.authorities...)
	}
	return func(held []*x509.Certificate) []*x509.Certificate {
		return slices.DeleteFunc(slices.Clone(held), func(each *x509.Certificate) bool {
			key := string(each.Raw)
			if contains(needed, each) {
				delete(l.unneeded, key)
				return false
			}
			if _, known := l.unneeded[key]; !known {
				l.unneeded[key] = now
			}
			return now.After(each.NotAfter) || now.Sub(l.unneeded[key]) >= hold
		})
	}
}

// tidy removes unneeded authorities and publishes those that the cluster trusts afterwards.
func (l *Leader) tidy(ctx context.Context, now time.Time) error {
	trusts, err := l.controller.registrations.change(ctx, now, l.retire(now))
	if err != nil {
		return err
	}
	l.forget(trusts)
	if own, isOwn := l.controller.config.Source.(*OwnAuthority); isOwn {
		return l.publishBundle(ctx, own, trusts)
	}
	return nil
}

// forget resets the time of authorities that are in no bundle any more: another replica can need them later.
func (l *Leader) forget(trusts []trust) {
	maps.DeleteFunc(l.unneeded, func(key string, _ time.Time) bool {
		return !slices.ContainsFunc(trusts, func(each trust) bool {
			return slices.ContainsFunc(each.authorities, func(held *x509.Certificate) bool { return string(held.Raw) == key })
		})
	})
}

// publishBundle stores the authorities that the cluster trusts in the Secret, for use by other clients.
func (l *Leader) publishBundle(ctx context.Context, own *OwnAuthority, trusts []trust) error {
	secret, found, err := own.read(ctx)
	if err != nil || found == nil || !found.ours() || len(trusts) == 0 {
		return err
	}
	trusted := trusts[0].authorities
	if !contains(trusted, found.leaf()) || sameCertificates(trusted, parseBundle(secret.Data[authorityKey])) {
		return nil
	}
	return own.store(ctx, secret, found, encodeBundle(trusted))
}
