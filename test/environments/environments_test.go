// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// subtest is a test on a cluster that it shares with others. It uses its own namespaces, and leaves the server running with the default
// SyncPolicy of the tests.
type subtest struct {
	name string
	run  func(*testCluster, *testing.T)
}

// run runs subtests one after the other.
func (s *testCluster) run(t *testing.T, subtests []subtest) {
	t.Helper()
	for _, test := range subtests {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}

// TestEnvironments checks what environments copy, what they show, and what users do with them.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	newTestCluster(t).run(t, []subtest{
		{"CopyMatchesSource", (*testCluster).testCopyMatchesSource},
		{"AllKinds", (*testCluster).testAllKinds},
		{"GatewayAPI", (*testCluster).testGatewayAPI},
		{"ObjectsThatAreNotCopied", (*testCluster).testObjectsThatAreNotCopied},
		{"ManualSync", (*testCluster).testManualSync},
		{"DependencyChanges", (*testCluster).testDependencyChanges},
		{"Plugin", (*testCluster).testPlugin},
		{"Commands", (*testCluster).testCommands},
		{"Diff", (*testCluster).testDiff},
		{"Deletion", (*testCluster).testDeletion},
	})
}

// TestSyncs checks when changes are taken, and what happens if they cannot be.
func TestSyncs(t *testing.T) {
	t.Parallel()
	newTestCluster(t).run(t, []subtest{
		{"AutoSync", (*testCluster).testAutoSync},
		{"Shadow", (*testCluster).testShadow},
		{"SyncWindows", (*testCluster).testSyncWindows},
		{"Rollback", (*testCluster).testRollback},
		{"BranchConflicts", (*testCluster).testBranchConflicts},
		{"ForeignObjects", (*testCluster).testForeignObjects},
		{"RefusedObjects", (*testCluster).testRefusedObjects},
		{"InvalidTargets", (*testCluster).testInvalidTargets},
		{"TargetRecreated", (*testCluster).testTargetRecreated},
		{"SyncInterrupted", (*testCluster).testSyncInterrupted},
		{"RequestPermissions", (*testCluster).testRequestPermissions},
		{"PermissionLost", (*testCluster).testPermissionLost},
	})
}

// TestUnwatchedWorkloads uses a server without permission to watch workloads in the whole cluster. The readiness of workloads is
// unknown then, and everything else must work.
func TestUnwatchedWorkloads(t *testing.T) {
	t.Parallel()
	s := newTestClusterOf(t, devcluster.Options{
		Parts: []string{}, Denials: "the role for the readiness of environments is optional",
	})
	s.testUnwatchedWorkloads(t)
}
