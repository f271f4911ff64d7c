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

// Leader is what one replica does for all. It lasts for as long as its replica leads.
type Leader struct {
	keeper   *Keeper
	reporter reporter
	vigil    vigil
	// handover is to an authority that the leader has made and that is not in the Secret yet.
	handover handover
	// unneeded says since when this leader has seen an authority in a bundle that it does not need.
	unneeded map[string]time.Time
}

// NewLeader returns what the replica of a Keeper does while it leads.
func NewLeader(keeper *Keeper) *Leader {
	return &Leader{
		keeper: keeper, handover: handover{name: keeper.name}, unneeded: map[string]time.Time{},
		vigil: newVigil(keeper.watches, keeper.config.Source),
	}
}

// Name is "serving-certificate".
func (l *Leader) Name() string { return "serving-certificate" }

// Run does what is due until ctx is done. What fails is tried again.
func (l *Leader) Run(ctx context.Context) error {
	term := NewLeader(l.keeper)
	every(ctx, l.keeper.config.Clock, func() {
		if !term.idle(l.keeper.config.Clock.Now()) {
			term.RunOnce(ctx)
		}
	})
	return nil
}

// idle tells whether a look would change nothing, as far as that can be told without asking the cluster.
func (l *Leader) idle(now time.Time) bool {
	return l.handover.next == nil && !l.reporter.failing() && l.vigil.quiet(now)
}

// RunOnce does what is due. Trouble is logged and counted.
func (l *Leader) RunOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(logredact.WithoutBodies(ctx), lookTimeout)
	defer cancel()
	now := l.keeper.config.Clock.Now()
	l.vigil.begin(now)
	var failure error
	if own, isOwn := l.keeper.config.Source.(*OwnAuthority); isOwn {
		failure = l.replace(ctx, own, now)
	}
	if failure == nil {
		// Nothing is taken out while something is wrong: other replicas may go on with what they have.
		failure = l.tidy(ctx, now)
	}
	l.reporter.report(ctx, "The authorities of the serving certificate cannot be brought up to date for now, trying again", failure)
}

// replace makes another authority when that of the server's own is old, gone or for other names, and puts it into the
// Secret once the cluster trusts it.
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
	trusts, err := l.keeper.registrations.change(ctx, now, func(held []*x509.Certificate) []*x509.Certificate {
		return withAuthorities(held, next.authorities, now)
	})
	shown, _ := l.keeper.state()
	if !l.handover.safe(shown, trusts, now) {
		return err
	}
	bundle := withAuthorities(l.keeper.needed(), next.authorities, now)
	return errors.Join(err, own.store(ctx, secret, next.signer, encodeBundle(bundle)))
}

// propose makes an authority that is to be in the Secret, unless there is one.
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

// retire takes out what has expired, and what nobody has needed for so long that no replica shows a certificate of it.
func (l *Leader) retire(now time.Time) edit {
	needed, hold := l.keeper.needed(), l.keeper.config.Source.hold()
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

// tidy takes out what nobody needs, and tells whom the cluster trusts then.
func (l *Leader) tidy(ctx context.Context, now time.Time) error {
	trusts, err := l.keeper.registrations.change(ctx, now, l.retire(now))
	if err != nil {
		return err
	}
	l.forget(trusts)
	if own, isOwn := l.keeper.config.Source.(*OwnAuthority); isOwn {
		return l.tell(ctx, own, trusts)
	}
	return nil
}

// forget begins anew with an authority that is in no bundle any more: another replica may need it later.
func (l *Leader) forget(trusts []trust) {
	maps.DeleteFunc(l.unneeded, func(key string, _ time.Time) bool {
		return !slices.ContainsFunc(trusts, func(each trust) bool {
			return slices.ContainsFunc(each.authorities, func(held *x509.Certificate) bool { return string(held.Raw) == key })
		})
	})
}

// tell keeps what the Secret says of all authorities that are trusted equal to what the cluster trusts, for whoever
// takes it to other clients.
func (l *Leader) tell(ctx context.Context, own *OwnAuthority, trusts []trust) error {
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
