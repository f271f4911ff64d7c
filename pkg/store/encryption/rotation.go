// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"time"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// Times are those of a rotation.
type Times struct {
	// Look is how often a [RotationController] looks whether there is anything to do.
	Look time.Duration
	// Settle is how long after a change of the configuration every replica has surely loaded it.
	Settle time.Duration
	// History is how long old revisions can be read: what is encrypted in them needs the keys of then.
	History time.Duration
	// Walk is the time between walks without cause. A replica with an older configuration than the leader's may encrypt
	// under an older key at any time, and nothing tells.
	Walk time.Duration
}

// DefaultTimes fit a store that is compacted every compaction, which keeps as much history again.
func DefaultTimes(compaction time.Duration) Times {
	return Times{Look: reloadInterval, Settle: 6 * reloadInterval, History: max(3*compaction, 15*time.Minute), Walk: time.Hour}
}

// pacePerSecond bounds the rows that are rewritten, so that others can write as well.
const pacePerSecond = 200

// RotationController has everything encrypted under the key for writing. It is run by the leader.
type RotationController struct {
	Encrypter *Encrypter
	// Rows are all that is encrypted.
	Rows  []Rows
	Times Times
}

// Name returns "sealing", the name in metrics and logs.
func (k *RotationController) Name() string { return "sealing" }

// Run works until ctx ends. What fails is tried again with the next look.
func (k *RotationController) Run(ctx context.Context) error {
	t := &term{controller: k, walker: walker{k.Encrypter, flowcontrol.NewTokenBucketRateLimiter(pacePerSecond, 1)}}
	ticker := time.NewTicker(k.Times.Look)
	defer ticker.Stop()
	for {
		if err := t.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Stored rows cannot be sealed anew for now, trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// term is the time for which one process leads.
type term struct {
	controller *RotationController
	walker     walker
	// content is the configuration that this term last saw in force, since when it did.
	content []byte
	since   time.Time
	// probe is a value that was encrypted before the last walk. It is stale when the key for writing has changed.
	probe []byte
	// next is when to walk again.
	next time.Time
	// cleanSince is the beginning of the first of the walks that found nothing to do, one after the other; zero if the
	// last one found something.
	cleanSince time.Time
}

// look does what is due.
func (t *term) look(ctx context.Context, now time.Time) error {
	content := *t.controller.Encrypter.content.Load()
	if !bytes.Equal(content, t.content) {
		t.content, t.since, t.cleanSince, t.next = content, now, time.Time{}, now
	}
	if err := t.promote(ctx, now); err != nil {
		return err
	}
	if now.Before(t.next) && !t.keyChanged(ctx) {
		return nil
	}
	if err := t.walk(ctx, now); err != nil {
		return err
	}
	return t.retire(ctx, now)
}

// keyChanged tells whether the key for writing is another than before the last walk. A KMS plugin changes its key
// without a word.
func (t *term) keyChanged(ctx context.Context) bool {
	_, stale, err := t.controller.Encrypter.Work().TransformFromStorage(ctx, t.probe, probeContext)
	return err != nil || stale
}

// probeContext is the additional data of the probe, which is no row.
var probeContext = value.DefaultContext("probe")

// walk goes through everything.
func (t *term) walk(ctx context.Context, now time.Time) error {
	var err error
	if t.probe, err = t.controller.Encrypter.Work().TransformToStorage(ctx, nil, probeContext); err != nil {
		return err
	}
	var found outcome
	for _, rows := range t.controller.Rows {
		part, err := t.walker.walk(ctx, rows)
		if err != nil {
			return err
		}
		found.add(part)
	}
	switch {
	case !found.clean():
		t.cleanSince = time.Time{}
		// A replica that loads the configuration later than this one may have gone on with the old key.
		t.next = now.Add(t.controller.Times.Settle)
	case t.cleanSince.IsZero():
		t.cleanSince = now
		t.next = now.Add(min(t.controller.Times.History, t.controller.Times.Walk))
	default:
		t.next = now.Add(t.controller.Times.Walk)
	}
	return nil
}

// promote puts a new key first once every replica has had the time to load it.
func (t *term) promote(ctx context.Context, now time.Time) error {
	home, c := t.ours()
	if home == nil || c.pending() == "" || now.Sub(t.since) < t.controller.Times.Settle {
		return nil
	}
	klog.FromContext(ctx).Info("Sealing under a new key from now on", "key", c.pending(), "configuration", home.String())
	return edit(ctx, home, t.content, (*configuration).promote)
}

// retire takes old keys out when walks have found nothing encrypted under them for as long as history is kept.
func (t *term) retire(ctx context.Context, now time.Time) error {
	home, c := t.ours()
	if home == nil || len(c.old()) == 0 || t.cleanSince.IsZero() || now.Sub(t.cleanSince) < t.controller.Times.History {
		return nil
	}
	klog.FromContext(ctx).Info("Nothing is sealed under the old keys any more, taking them out", "keys", c.old(), "configuration", home.String())
	return edit(ctx, home, t.content, (*configuration).retire)
}

// ours is the home of the configuration in force and what it says, or nil if the server does not change it.
func (t *term) ours() (Home, *configuration) {
	home, ours := t.controller.Encrypter.config.Origin.(Home)
	if !ours {
		return nil, nil
	}
	c, err := parseConfiguration(t.content)
	if err != nil {
		return nil, nil // It was edited by hand, and whoever did that looks after the keys.
	}
	return home, c
}
