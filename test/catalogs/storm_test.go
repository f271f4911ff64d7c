// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"flag"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/catalogs/storm"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

var updates = flag.Int("storm", 1_000, "how many changes a storm has, at least 50")

const (
	// stormLength is how long a storm of 10 000 changes lasts where the control plane is quick enough.
	stormLength = 30 * time.Second
	// stormWindow is short enough for several records of a storm.
	stormWindow = 2 * time.Second
)

// TestStorm changes production faster than a record could be made of each change.
func TestStorm(t *testing.T) {
	base := mirrortest.NewStage(t, devcluster.Options{Audit: true})
	s := &stage{Stage: base}
	s.gather(t, stormWindow)
	workloads := 50
	if *updates >= 10_000 {
		workloads = 200
	}
	raging := storm.New(t, base, workloads)
	took := raging.Rage(t, *updates, stormLength*time.Duration(*updates)/10_000)
	raging.Passed(t)
	windows := raging.Records(t, stormWindow)
	t.Logf("%d changes of %d workloads in %s, recorded in %d windows", *updates, workloads, took.Round(time.Second/10), windows)
}
