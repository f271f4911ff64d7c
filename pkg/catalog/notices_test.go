// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/configbutler/slipstream/pkg/metrics/metrictest"
	"github.com/configbutler/slipstream/pkg/store/bolt/bolttest"
)

// crowdedFixture returns a fixture with a catalog of a number of workloads, and an intake with a capacity of ten.
func crowdedFixture(t *testing.T, workloads int) *fixture {
	t.Helper()
	var names []string
	for n := range workloads {
		names = append(names, fmt.Sprintf("w%02d", n))
	}
	s := newFixture(t, appCatalog("shop", names...))
	s.capacity = 10
	s.changeWorkloads(workloads, 1)
	return s
}

// changeWorkloads sets the version of the first workloads.
func (s *fixture) changeWorkloads(workloads, version int) {
	s.Helper()
	for n := range workloads {
		s.put(fmt.Sprintf("w%02d", n), fmt.Sprintf("shop/w:%d", version))
	}
}

// expectWarnings waits for a number of Events with a reason, and then for a window in which no more must be published.
func (s *fixture) expectWarnings(reason string, times int) {
	s.Helper()
	count := func() (n int) {
		for _, event := range s.events.Lines() {
			if strings.HasPrefix(event, "teams/shop Warning "+reason+": ") && strings.Contains(event, "production") {
				n++
			}
		}
		return n
	}
	s.eventually(fmt.Sprintf("%d Events for %s", times, reason), func() error {
		if n := count(); n < times {
			return fmt.Errorf("%q", s.events.Lines())
		}
		return nil
	})
	s.stepWindow()
	if n := count(); n != times {
		s.Errorf("%d Events for %s, want %d: %q", n, reason, times, s.events.Lines())
	}
}

func TestEventsReportAFillingIntake(t *testing.T) {
	s := crowdedFixture(t, 8)
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	s.changeWorkloads(6, 2)
	s.waitForEvents(6)
	s.waitForRevision("shop", 2)
	s.expectWarnings(reasonFilling, 0)
	s.changeWorkloads(8, 3)
	s.waitForEvents(14)
	s.expectWarnings(reasonFilling, 1)
	s.waitForRevision("shop", 3)
}

func TestEventsReportOverflowsOncePerInterval(t *testing.T) {
	s := crowdedFixture(t, 12)
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	overflow := func(version int) {
		t.Helper()
		s.changeWorkloads(12, version)
		s.waitForEvents(12 * int64(version-1))
		s.waitForRevision("shop", int64(version))
		s.stepWindow()
	}
	overflow(2)
	s.expectWarnings(reasonOverflowed, 1)
	overflow(3)
	s.expectWarnings(reasonOverflowed, 1)
	s.clock.Step(noticeInterval)
	overflow(4)
	s.expectWarnings(reasonOverflowed, 2)
	if got := s.syncStatuses(); got[len(got)-1].Status.WorkloadCount != 12 {
		t.Errorf("last record = %q", s.recordLines())
	}
}

func TestEventsReportChangesThatCannotBeStored(t *testing.T) {
	s := crowdedFixture(t, 3)
	var full atomic.Bool
	s.kv = bolttest.WithWrites(s.kv, func(_ context.Context, write bolttest.Write) error {
		if full.Load() {
			return rpctypes.ErrNoSpace
		}
		return write.Commit()
	})
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	before := metrictest.Values(t)["catalog_failures_total Transient"]
	full.Store(true)
	s.changeWorkloads(3, 2)
	s.waitForEvents(3)
	s.expectWarnings(reasonBlocked, 1)
	full.Store(false)
	s.waitForRevision("shop", 2)
	s.eventually("the Event that changes are stored again", func() error {
		if got := s.events.Lines(); !slices.Contains(got, "teams/shop Normal ChangesKept: Changes of production can be stored again") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	if attempts := metrictest.Values(t)["catalog_failures_total Transient"] - before; attempts == 0 || attempts > 20 {
		t.Errorf("namespace was reconciled %v times while its changes could not be stored", attempts)
	}
}
