// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"flag"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/catalogs/storm"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

var updates = flag.Int("storm", 1_000, "number of changes, at least 50")

const (
	// stormLength is the duration of a storm of 10 000 changes if the control plane is fast enough.
	stormLength = 30 * time.Second
	// stormWindow is short enough for several records during a storm.
	stormWindow = 2 * time.Second
)

// TestStorm changes the source faster than each change could be recorded.
func TestStorm(t *testing.T) {
	t.Parallel()
	base := mirrortest.NewAdminCluster(t, devcluster.Options{Audit: true})
	s := &testCluster{AdminCluster: base}
	s.setBatchWindow(t, stormWindow)
	workloads := 50
	if *updates >= 10_000 {
		workloads = 200
	}
	load := storm.New(t, base, workloads)
	took := load.Run(t, *updates, stormLength*time.Duration(*updates)/10_000)
	load.WaitForCatalogs(t)
	windows := load.CheckRecords(t, stormWindow)
	t.Logf("%d changes of %d workloads in %s, recorded in %d windows", *updates, workloads, took.Round(time.Second/10), windows)
}
