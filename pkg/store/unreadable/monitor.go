// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
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
	// CheckName names the check of a server that fails while records cannot be read.
	CheckName = "store-records"
	// interval is how often all records are looked at; shortInterval while some cannot be read.
	interval, shortInterval = 5 * time.Minute, time.Second
	// share is how many times as long as a look took the next one waits at least.
	share = 50
	// named bounds the records of a resource that are remembered by name.
	named = 20
)

var unreadableRecords = metrics.NewGaugeVec("store_unreadable_records",
	"Stored records that cannot be read: they do not open, or do not decode. Every replica looks for them.", "resource")

func init() { legacyregistry.MustRegister(unreadableRecords) }

// Monitor looks for records that cannot be read, again and again.
type Monitor struct {
	store *Store
	clock clock.Clock
	// wake asks for a look before it is due.
	wake chan struct{}

	mu    sync.Mutex
	found findings
}

// findings are what a look has found, by resource.
type findings map[schema.GroupResource]*finding

type finding struct {
	count int
	// first are the first of them, no more than are named.
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

// NewMonitor returns a monitor of a store. It knows nothing until it runs.
func NewMonitor(store *Store, c clock.Clock) *Monitor {
	return &Monitor{store: store, clock: c, wake: make(chan struct{}, 1)}
}

// Run looks for records until ctx ends: at once, every five minutes, and every second while there
// are any; sooner when a record is met that cannot be read; less often where a look takes long.
func (m *Monitor) Run(ctx context.Context) {
	for {
		least, more := m.look(ctx)
		if !m.pause(ctx, least, nil) || !m.pause(ctx, more, m.wake) {
			return
		}
	}
}

// pause waits for a time, or until it is woken. It reports whether ctx is still valid.
func (m *Monitor) pause(ctx context.Context, wait time.Duration, wake <-chan struct{}) bool {
	timer := m.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C():
	}
	return ctx.Err() == nil
}

// look looks at all records, and returns how long to wait for the next look: at least, and how much more unless
// one is requested. A look that is interrupted, because the store does not answer, changes nothing: other checks
// report that.
func (m *Monitor) look(ctx context.Context) (least, more time.Duration) {
	began := m.clock.Now()
	found := findings{}
	if err := m.store.Find(ctx, found.add); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Stored records cannot be looked at, trying again")
		}
		return shortInterval, 0
	}
	m.mu.Lock()
	before := m.found
	m.found = found
	m.mu.Unlock()
	report(ctx, before, found)
	least = max(shortInterval, share*m.clock.Since(began))
	if len(found) == 0 {
		more = max(0, interval-least)
	}
	return least, more
}

// report logs each record once, and counts them. The working state has a number even if all of it
// can be read, so that the metric shows that records are checked.
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

// of returns what the last look has found of a resource.
func (m *Monitor) of(resource schema.GroupResource) finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.found[resource]; found != nil {
		return *found
	}
	return finding{}
}

// lookSoon asks for a look as soon as the last one allows, because a record was met that cannot be read.
func (m *Monitor) lookSoon() {
	select {
	case m.wake <- struct{}{}:
	default: // One is asked for already.
	}
}

// HealthCheck fails while records cannot be read. Everything else is served all the while, so it
// is no reason to stop serving.
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
