// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// TestEnvironments runs its subtests one after the other on one cluster. Each uses its own namespaces, and leaves the server
// running with the default SyncPolicy of the tests.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testCluster, *testing.T)
	}{
		{"CopyMatchesSource", (*testCluster).testCopyMatchesSource},
		{"AllKinds", (*testCluster).testAllKinds},
		{"GatewayAPI", (*testCluster).testGatewayAPI},
		{"ObjectsThatAreNotCopied", (*testCluster).testObjectsThatAreNotCopied},
		{"ManualSync", (*testCluster).testManualSync},
		{"DependencyChanges", (*testCluster).testDependencyChanges},
		{"AutoSync", (*testCluster).testAutoSync},
		{"Shadow", (*testCluster).testShadow},
		{"SyncWindows", (*testCluster).testSyncWindows},
		{"Rollback", (*testCluster).testRollback},
		{"BranchConflicts", (*testCluster).testBranchConflicts},
		{"Plugin", (*testCluster).testPlugin},
		{"Commands", (*testCluster).testCommands},
		{"Diff", (*testCluster).testDiff},
		{"ForeignObjects", (*testCluster).testForeignObjects},
		{"RefusedObjects", (*testCluster).testRefusedObjects},
		{"InvalidTargets", (*testCluster).testInvalidTargets},
		{"TargetRecreated", (*testCluster).testTargetRecreated},
		{"SyncInterrupted", (*testCluster).testSyncInterrupted},
		{"RequestPermissions", (*testCluster).testRequestPermissions},
		{"PermissionLost", (*testCluster).testPermissionLost},
		{"Deletion", (*testCluster).testDeletion},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
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
