// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"
)

const (
	// lagsInterval is the interval at which the lags are stored if they have changed, or were stored before lagsRefresh.
	lagsInterval = 10 * time.Second
	lagsRefresh  = 10 * time.Minute
	// lagsLifetime is the age from which on stored lags are not used: meanwhile, API servers may have been set to send audit events less often.
	lagsLifetime = time.Hour
	// lagsTimeout bounds reading and writing them.
	lagsTimeout = 5 * time.Second
	// lagsTolerance is the share of a stored lag by which it may differ from the measured one, lagsMargin the difference that is always
	// allowed. A lag decreases slowly and all the time.
	lagsTolerance = 0.1
	lagsMargin    = 10 * time.Millisecond
)

// Lags are the maximum times between a change and the arrival of its fact, as known to one term.
type Lags struct {
	// Stored is when they were stored.
	Stored time.Time `json:"stored"`
	// LastAudited is when the last report of the API servers' audit arrived; zero if that is not known.
	LastAudited time.Time `json:"lastAudited,omitzero"`
	// Sources has them by the name of the source: audit, served or admission. A source that has not been measured often enough is not in it.
	Sources map[string]time.Duration `json:"sources"`
}

// named returns the sources by their names in Lags.
func (s *sources) named() map[string]*source {
	return map[string]*source{"audit": &s.audit, "served": &s.served, "admission": &s.admission}
}

// lags returns the lags that are measured, or still used as they were stored.
func (s *sources) lags(now time.Time) Lags {
	lags := Lags{Stored: now, LastAudited: s.audit.lastFact, Sources: map[string]time.Duration{}}
	if lags.LastAudited.IsZero() {
		lags.LastAudited = s.audit.lastFactBefore
	}
	for name, each := range s.named() {
		switch {
		case each.measurements >= s.needed(each):
			lags.Sources[name] = each.lag
		case each.resumed != nil:
			lags.Sources[name] = *each.resumed
		}
	}
	return lags
}

// resume makes the sources use the lags that an earlier term has measured, until they are measured again.
func (s *sources) resume(lags Lags, now time.Time) {
	s.audit.lastFactBefore = lags.LastAudited
	if now.Sub(lags.Stored).Abs() > lagsLifetime {
		return
	}
	for name, each := range s.named() {
		if lag, ok := lags.Sources[name]; ok && lag >= 0 && each.measurements == 0 {
			each.resumed = &lag
		}
	}
}

// near reports whether lags are so close to the stored ones, and these are so new, that they need not be stored.
func (l Lags) near(stored Lags) bool {
	recent := l.Stored.Sub(stored.Stored) < lagsRefresh && l.LastAudited.Sub(stored.LastAudited) < lagsRefresh
	return recent && maps.EqualFunc(l.Sources, stored.Sources, func(a, b time.Duration) bool {
		return (a - b).Abs() <= max(lagsMargin, time.Duration(lagsTolerance*float64(b)))
	})
}

// resumeLags sets the stored lags. Without them, changes wait as long as they may until the lags are measured.
func (j *Joiner) resumeLags(ctx context.Context) Lags {
	ctx, cancel := context.WithTimeout(ctx, lagsTimeout)
	defer cancel()
	lags, err := j.config.Facts.Lags(ctx, j.config.Controller)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read how late reports of authors are, measuring it again")
		return Lags{}
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.expected.sources.resume(lags, time.Now())
	return lags
}

// storeLags stores the lags while they change, until ctx ends.
func (j *Joiner) storeLags(ctx context.Context, stored Lags) {
	ticker := time.NewTicker(lagsInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		j.mutex.Lock()
		lags := j.expected.sources.lags(time.Now())
		j.mutex.Unlock()
		if len(lags.Sources) == 0 && lags.LastAudited.IsZero() || lags.near(stored) {
			continue
		}
		if err := j.storeOnce(ctx, lags); err != nil {
			klog.FromContext(ctx).V(2).Info("Failed to store how late reports of authors are, will retry", "err", err)
			continue
		}
		stored = lags
	}
}

func (j *Joiner) storeOnce(ctx context.Context, lags Lags) error {
	ctx, cancel := context.WithTimeout(ctx, lagsTimeout)
	defer cancel()
	return j.config.Facts.StoreLags(ctx, j.config.Controller, lags)
}
