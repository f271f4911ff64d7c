// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/pagetest"
)

// TestPage runs its subtests one after the other on one cluster.
func TestPage(t *testing.T) {
	t.Parallel()
	b := pagetest.NewBrowser(t, "scenarios.mjs")
	s := newTestCluster(t)
	s.fill(t)
	for _, test := range []struct {
		name string
		run  func(*testCluster, *testing.T)
	}{
		{"Hosts", (*testCluster).testHosts},
		{"Headers", (*testCluster).testHeaders},
		{"Routes", (*testCluster).testRoutes},
		{"Origins", (*testCluster).testOrigins},
		{"Bodies", (*testCluster).testBodies},
		{"Codes", (*testCluster).testCodes},
		{"Sessions", (*testCluster).testSessions},
		{"Streams", (*testCluster).testStreams},
		{"ReadOnly", (*testCluster).testReadOnly},
		{"Arguments", (*testCluster).testArguments},
		{"Identity", (*testCluster).testIdentity},
		{"Disclosure", (*testCluster).testDisclosure},
	} {
		t.Run("HTTP/"+test.name, func(t *testing.T) { test.run(s, t) })
	}
	for _, scenario := range b.Scenarios(t) {
		t.Run(scenario, func(t *testing.T) {
			b.Run(t, scenario, func(name string, arguments json.RawMessage) (any, error) { return s.step(t, name, arguments) })
		})
	}
}
