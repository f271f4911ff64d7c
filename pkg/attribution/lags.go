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
	// lagsInterval is the interval at which the lags are stored if they have changed.
	lagsInterval = 10 * time.Second
	// lagsTimeout bounds reading and writing them.
	lagsTimeout = 5 * time.Second
	// lagsTolerance is the share of a stored lag by which it may differ from the measured one. A lag decreases slowly and all the time.
	lagsTolerance = 0.1
)

// Lags are the maximum times between a change and the arrival of its fact, by the name of the source: audit, served or admission. A source
// that has not been measured often enough is not in it.
type Lags map[string]time.Duration

// named returns the sources by their names in Lags.
func (s *sources) named() map[string]*source {
	return map[string]*source{"audit": &s.audit, "served": &s.served, "admission": &s.admission}
}

// lags returns the measured lags.
func (s *sources) lags() Lags {
	lags := Lags{}
	for name, each := range s.named() {
		if each.measurements >= s.needed(each) {
			lags[name] = each.lag
		}
	}
	return lags
}

// resume sets the lags that an earlier term has measured.
func (s *sources) resume(lags Lags) {
	for name, each := range s.named() {
		if lag, ok := lags[name]; ok && each.measurements == 0 {
			each.lag, each.measurements = max(lag, 0), minMeasurements
		}
	}
}

// near reports whether lags are so close to the stored ones that they need not be stored.
func (l Lags) near(stored Lags) bool {
	return maps.EqualFunc(l, stored, func(a, b time.Duration) bool {
		return (a - b).Abs() <= time.Duration(lagsTolerance*float64(b))
	})
}

// resumeLags sets the stored lags. Without them, changes wait as long as they may until the lags are measured.
func (j *Joiner) resumeLags(ctx context.Context) Lags {
	ctx, cancel := context.WithTimeout(ctx, lagsTimeout)
	defer cancel()
	lags, err := j.config.Facts.Lags(ctx, j.config.Controller)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to read how late reports of authors are, measuring it again")
		return nil
	}
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.expected.sources.resume(lags)
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
		lags := j.expected.sources.lags()
		j.mutex.Unlock()
		if len(lags) == 0 || lags.near(stored) {
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
