// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/bench/fill"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/pagetest"
)

// changes is the number of Changes in the history.
const changes = 100_000

// BenchmarkPage runs the scenarios of test/page/browser/measures.mjs, each of which reports its results. A scenario also fails if the page
// lacks a row or a number that it must show.
func BenchmarkPage(b *testing.B) {
	browser := pagetest.NewBrowser(b, "measures.mjs")
	s := newTestCluster(b)
	s.createEnvironments(b)
	s.storeChanges(b)
	s.dashboard = pagetest.StartDashboard(b, s.Admin())
	for _, scenario := range browser.Scenarios(b) {
		b.Run(scenario, func(b *testing.B) {
			for b.Loop() {
				browser.Run(b, scenario, func(name string, arguments json.RawMessage) (any, error) { return s.step(b, name, arguments) })
			}
			b.ReportMetric(0, "ns/op") // the duration of the scenario is not a result
		})
	}
}

// storeChanges writes Changes to the files of the server, which is stopped meanwhile.
func (s *testCluster) storeChanges(b *testing.B) {
	b.Helper()
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := fill.History(b.Context(), s.Env(devcluster.EnvDataDir), changes); err != nil {
		b.Fatal(err)
	}
	if err := s.StartServer(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// testCluster is a cluster with the server and a dashboard of the administrator.
type testCluster struct {
	*mirrortest.AdminCluster
	slipstream versioned.Interface
	dashboard  *pagetest.Dashboard
}

func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{})}
	s.slipstream = mirrortest.ClientOf(b, s.Admin(), versioned.NewForConfig)
	return s
}

// step does what a scenario asks for.
func (s *testCluster) step(b *testing.B, name string, arguments json.RawMessage) (any, error) {
	b.Helper()
	var args struct {
		// Unit and Value are a result.
		Unit  string
		Value float64
		// Label is what an update sets.
		Label string
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return nil, err
	}
	switch name {
	case "link":
		return s.dashboard.Link(b), nil
	case "report":
		b.ReportMetric(args.Value, args.Unit)
		return nil, nil
	case "update":
		return nil, s.updateEnvironments(b, args.Label)
	case "seeded":
		return map[string]int{
			"environments": environments, "updates": updates, "namespaced": changes / fill.Namespaces,
			"life": changes / fill.Namespaces / fill.Often,
		}, nil
	}
	return nil, fmt.Errorf("unknown step %s", name)
}
