// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/metrics"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

const (
	// CheckName is the name of the health check that fails while records cannot be read.
	CheckName = "store-records"
	// interval is the interval between checks of all records; shortInterval is used while some cannot be read.
	interval, shortInterval = 5 * time.Minute, time.Second
	// share is the minimum delay before the next check, and restShare before the next one that is not requested, as multiples of the duration
	// of the last one without its pauses: a check reads and decrypts everything, six to nine seconds' work with 200 000 Changes.
	share, restShare = 50, 500
	// named bounds the records of a resource that are recorded by name.
	named = 20
)

var unreadableRecords = metrics.NewGaugeVec("store_unreadable_records",
	"Stored records that cannot be decrypted or decoded. Every replica scans for them.", "resource")

func init() { legacyregistry.MustRegister(unreadableRecords) }

// Monitor checks periodically for records that cannot be read.
type Monitor struct {
	store *Store
	clock clock.Clock
	// rested is called at each pause, and after each check.
	rested func(ctx context.Context)
	// wake requests a check before the next one is due.
	wake chan struct{}
	// unfilled is set when a list fails because its watch cache is not initialized.
	unfilled atomic.Bool

	mu    sync.Mutex
	found findings
}

// findings are the results of a check, by resource.
type findings map[schema.GroupResource]*finding

type finding struct {
	count int
	// first are the first records, at most named.
	first []Record
}

func (f findings) add(r Record) {
	if f[r.Resource] == nil {
		f[r.Resource] = &finding{}
	}
	each := f[r.Resource]
	each.count++
	if len(each.first) < named {
		each.first = append(each.first, r)
	}
}

// NewMonitor returns a monitor of a store. It calls rested at each pause of a check, and after each check. It has no findings until it runs.
func NewMonitor(store *Store, c clock.Clock, rested func(ctx context.Context)) *Monitor {
	return &Monitor{store: store, clock: c, rested: rested, wake: make(chan struct{}, 1)}
}

// Run checks all records until ctx ends: immediately, every five minutes, and every second while there are unreadable
// ones; sooner if a read fails because of an unreadable record, which requests a check; less often if a check takes long.
func (m *Monitor) Run(ctx context.Context) {
	for requested := false; ; {
		least, more, done := m.look(ctx, requested)
		if _, err := m.wait(ctx, least, nil); err != nil {
			return
		}
		woken, err := m.wait(ctx, more, m.wake)
		if err != nil {
			return
		}
		requested = woken || requested && !done
	}
}

// wait waits for a duration, or until wake receives, which it reports, or until ctx ends, whose error it returns.
func (m *Monitor) wait(ctx context.Context, duration time.Duration, wake <-chan struct{}) (woken bool, err error) {
	timer := m.clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-wake:
		woken = true
	case <-timer.C():
	}
	return woken, ctx.Err()
}

// look checks all records, slowly unless the check is requested, and returns the delay before the next check: the minimum, and the
// additional delay unless one is requested. A check that fails because the store does not respond is not done and changes nothing: other
// health checks report that.
func (m *Monitor) look(ctx context.Context, requested bool) (least, more time.Duration, done bool) {
	defer m.rested(ctx)
	began := m.clock.Now()
	found := findings{}
	pace := &pace{monitor: m, found: found, hurry: requested, start: began, began: began}
	if err := m.store.Find(ctx, found.add, pace.afterRecord); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to check stored records, will retry")
		}
		return shortInterval, 0, false
	}
	m.mu.Lock()
	before := m.found
	m.found = found
	m.mu.Unlock()
	report(ctx, before, found)
	took := m.clock.Since(began) - pace.paused
	least = max(shortInterval, share*took)
	if len(found) == 0 {
		more = max(0, max(interval, restShare*took)-least)
	}
	return least, more, true
}

// report logs each record once, and sets the metric. The metric of the working state is set even if all of it can be
// read, to show that records are checked.
func report(ctx context.Context, before, found findings) {
	logger := klog.FromContext(ctx)
	if found[encryption.WorkResource] == nil {
		unreadableRecords.WithLabelValues(encryption.WorkResource.Resource).Set(0)
	}
	for resource, now := range found {
		unreadableRecords.WithLabelValues(resource.Resource).Set(float64(now.count))
		for _, record := range now.first {
			if before[resource] == nil || !slices.ContainsFunc(before[resource].first, func(r Record) bool { return r.Key == record.Key }) {
				logger.Error(record.Err, "A stored record cannot be read", "resource", resource.String(), "key", record.Key, "setAsideWith", Command)
			}
		}
	}
	for resource := range before {
		if found[resource] == nil {
			unreadableRecords.WithLabelValues(resource.Resource).Set(0)
			logger.Info("Every stored record can be read again", "resource", resource.String())
		}
	}
}

// of returns the findings of the last check for a resource.
func (m *Monitor) of(resource schema.GroupResource) finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.found[resource]; found != nil {
		return *found
	}
	return finding{}
}

// lookSoon requests a check as soon as the minimum delay allows, because a read failed over an unreadable record.
func (m *Monitor) lookSoon() {
	select {
	case m.wake <- struct{}{}:
	default: // One is already requested.
	}
}

// HealthCheck returns a check that fails while records cannot be read. All other records are still served, so it must not
// be a liveness check.
func (m *Monitor) HealthCheck() healthz.HealthChecker {
	return healthz.NamedCheck(CheckName, func(*http.Request) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		count, first := 0, ""
		for _, found := range m.found {
			count += found.count
			if name := found.first[0].String(); first == "" || name < first {
				first = name
			}
		}
		if count == 0 {
			return nil
		}
		return fmt.Errorf("%d stored records cannot be read, such as %s: %q sets them aside", count, first, Command)
	})
}
