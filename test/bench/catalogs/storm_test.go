// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/catalogs/storm"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	stormChanges   = 10_000
	stormWorkloads = 200
	// stormLength is the duration of the storm if the control plane is fast enough.
	stormLength = 30 * time.Second
	// stormWindow is the default batch window.
	stormWindow = 30 * time.Second
	// idleLength is how long the started server is idle before the storm.
	idleLength = 10 * time.Second
)

// storm changes workloads that two catalogs follow, and measures the additional memory of the server.
func (s *testCluster) storm(b *testing.B) {
	s.gather(b, time.Second)
	load := storm.New(b, s.AdminCluster, stormWorkloads)
	s.gather(b, stormWindow)
	s.restart(b)
	mirrortest.Eventually(b, "the sources are watched", func(ctx context.Context) error {
		n, err := s.Counted(ctx, "slipstream_catalog_sources")
		if err == nil && n == 0 {
			err = errors.New("no source is watched")
		}
		return err
	})
	server := s.Env(devcluster.EnvServerPIDs)
	pause(b, idleLength)
	idle := usage.MiB(b, server, usage.Resident)
	b.ReportMetric(usage.MiB(b, server, usage.Anonymous), "idle-anon-MiB")
	usage.ForgetPeak(b, server)
	took := load.Run(b, stormChanges, stormLength)
	ended := time.Now()
	load.WaitForCatalogs(b)
	b.ReportMetric(time.Since(ended).Seconds(), "drain-s")
	b.ReportMetric(idle, "idle-MiB")
	b.ReportMetric(usage.MiB(b, server, usage.Peak)-idle, "peak-MiB-over-idle")
	b.ReportMetric(took.Seconds(), "storm-s")
	b.ReportMetric(float64(load.CheckRecords(b, stormWindow)), "windows")
	storm.CheckNoResyncs(b, s.AdminCluster)
}
