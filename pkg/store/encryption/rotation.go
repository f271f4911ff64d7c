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

// Times are the intervals of a rotation.
type Times struct {
	// Look is the interval at which a [RotationController] checks for work.
	Look time.Duration
	// Settle is the time after which every replica has loaded a changed configuration.
	Settle time.Duration
	// History is how long old revisions can be read, which are encrypted with the keys of their time.
	History time.Duration
	// Walk is the interval of unconditional walks. A replica with an older configuration than the leader's may encrypt
	// with an older key at any time, which cannot be detected otherwise.
	Walk time.Duration
}

// DefaultTimes returns the times for a store that is compacted at the interval compaction and keeps as much history
// again.
func DefaultTimes(compaction time.Duration) Times {
	return Times{Look: reloadInterval, Settle: 6 * reloadInterval, History: max(3*compaction, 15*time.Minute), Walk: time.Hour}
}

// pacePerSecond bounds the rewritten rows per second, so that other writes are not delayed.
const pacePerSecond = 200

// RotationController rewrites all data that is not encrypted with the key for writing, and completes key rotations. The
// leader runs it.
type RotationController struct {
	Encrypter *Encrypter
	// Rows are all encrypted rows.
	Rows  []Rows
	Times Times
}

// Name returns "encryption", the name in metrics and logs.
func (r *RotationController) Name() string { return "encryption" }

// Run works until ctx ends. Failed work is retried at the next interval.
func (r *RotationController) Run(ctx context.Context) error {
	t := &term{controller: r, walker: walker{r.Encrypter, flowcontrol.NewTokenBucketRateLimiter(pacePerSecond, 1)}}
	ticker := time.NewTicker(r.Times.Look)
	defer ticker.Stop()
	for {
		if err := t.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to re-encrypt stored rows, will retry")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// term is the state of one leader term.
type term struct {
	controller *RotationController
	walker     walker
	// content is the active configuration, since when this term first observed it.
	content []byte
	since   time.Time
	// probe is a value that was encrypted before the last walk. It is stale if the key for writing has changed.
	probe []byte
	// next is the time of the next walk.
	next time.Time
	// cleanSince is the start of the first of the consecutive walks that found nothing to do; zero if the last one found
	// something.
	cleanSince time.Time
}

// look performs the work that is due.
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

// keyChanged reports whether the key for writing has changed since before the last walk. A KMS plugin may change its key
// without a change of the configuration.
func (t *term) keyChanged(ctx context.Context) bool {
	_, stale, err := t.controller.Encrypter.Work().TransformFromStorage(ctx, t.probe, probeContext)
	return err != nil || stale
}

// probeContext is the additional data of the probe, which is not a row.
var probeContext = value.DefaultContext("probe")

// walk checks all rows.
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
		// A replica that loads the configuration later than this one may have continued with the old key.
		t.next = now.Add(t.controller.Times.Settle)
	case t.cleanSince.IsZero():
		t.cleanSince = now
		t.next = now.Add(min(t.controller.Times.History, t.controller.Times.Walk))
	default:
		t.next = now.Add(t.controller.Times.Walk)
	}
	return nil
}

// promote puts a new key first once every replica has had time to load it.
func (t *term) promote(ctx context.Context, now time.Time) error {
	home, c := t.ours()
	if home == nil || c.pending() == "" || now.Sub(t.since) < t.controller.Times.Settle {
		return nil
	}
	klog.FromContext(ctx).Info("Encrypting with a new key", "key", c.pending(), "configuration", home.String())
	return edit(ctx, home, t.content, (*configuration).promote)
}

// retire removes old keys once walks have found nothing encrypted with them for as long as history is kept.
func (t *term) retire(ctx context.Context, now time.Time) error {
	home, c := t.ours()
	if home == nil || len(c.old()) == 0 || t.cleanSince.IsZero() || now.Sub(t.cleanSince) < t.controller.Times.History {
		return nil
	}
	klog.FromContext(ctx).Info("Removing old encryption keys, no data is encrypted with them", "keys", c.old(), "configuration", home.String())
	return edit(ctx, home, t.content, (*configuration).retire)
}

// ours returns the home of the active configuration and its content, or nil if the server does not manage it.
func (t *term) ours() (Home, *configuration) {
	home, ours := t.controller.Encrypter.config.Origin.(Home)
	if !ours {
		return nil, nil
	}
	c, err := parseConfiguration(t.content)
	if err != nil {
		return nil, nil // It was edited by hand, so its editor manages the keys.
	}
	return home, c
}
