// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// testCase is a subtest.
type testCase struct {
	name string
	run  func(*testCluster, *testing.T)
}

// TestNotifications runs its subtests on one cluster: first those that can run in parallel, then those that restart the server or need its
// full capacity.
func TestNotifications(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{})
	t.Run("Parallel", func(t *testing.T) {
		for _, p := range []testCase{
			{"Receivers", (*testCluster).testReceivers},
			{"Life", (*testCluster).testLife},
			{"Failures", (*testCluster).testFailures},
			{"Destination", (*testCluster).testDestination},
			{"OwnershipConflict", (*testCluster).testOwnershipConflict},
			{"Catalog", (*testCluster).testCatalog},
			{"Pipeline", (*testCluster).testPipeline},
			{"Content", (*testCluster).testContent},
			{"Bypass", (*testCluster).testBypass},
			{"Refused", (*testCluster).testRefused},
			{"OnlyReadableTypes", (*testCluster).testOnlyReadableTypes},
			{"OwnNamespace", (*testCluster).testOwnNamespace},
			{"Rotation", (*testCluster).testRotation},
			{"RetryAfter", (*testCluster).testRetryAfter},
			{"HangingReceiver", (*testCluster).testHangingReceiver},
			{"RefusedAddresses", (*testCluster).testRefusedAddresses},
			{"TestMessage", (*testCluster).testTestMessage},
		} {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.run(s, t)
			})
		}
	})
	for _, p := range []testCase{
		{"Restart", (*testCluster).testRestart},
		{"PermissionLost", (*testCluster).testPermissionLost},
		{"ManyChanges", (*testCluster).testManyChanges},
	} {
		t.Run(p.name, func(t *testing.T) { p.run(s, t) })
	}
}
