// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
)

// TestPage runs its subtests one after the other on one cluster.
func TestPage(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
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
	for _, scenario := range b.scenarios(t) {
		t.Run(scenario, func(t *testing.T) { b.run(t, s, scenario) })
	}
}
