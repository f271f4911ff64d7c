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
	s := newStage(t)
	for _, test := range []struct {
		name string
		run  func(*stage, *testing.T)
	}{
		{"CopyMatchesSource", (*stage).testCopyMatchesSource},
		{"AllKinds", (*stage).testAllKinds},
		{"GatewayAPI", (*stage).testGatewayAPI},
		{"ObjectsThatAreNotCopied", (*stage).testObjectsThatAreNotCopied},
		{"ManualSync", (*stage).testManualSync},
		{"DependencyChanges", (*stage).testDependencyChanges},
		{"AutoSync", (*stage).testAutoSync},
		{"Shadow", (*stage).testShadow},
		{"SyncWindows", (*stage).testSyncWindows},
		{"Rollback", (*stage).testRollback},
		{"BranchConflicts", (*stage).testBranchConflicts},
		{"Diff", (*stage).testDiff},
		{"ForeignObjects", (*stage).testForeignObjects},
		{"RefusedObjects", (*stage).testRefusedObjects},
		{"InvalidTargets", (*stage).testInvalidTargets},
		{"TargetRecreated", (*stage).testTargetRecreated},
		{"SyncInterrupted", (*stage).testSyncInterrupted},
		{"RequestPermissions", (*stage).testRequestPermissions},
		{"PermissionLost", (*stage).testPermissionLost},
		{"Deletion", (*stage).testDeletion},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}

// TestUnwatchedWorkloads uses a server without permission to watch workloads in the whole cluster. The readiness of workloads is
// unknown then, and everything else must work.
func TestUnwatchedWorkloads(t *testing.T) {
	s := newStageOf(t, devcluster.Options{
		Parts: []string{}, Denials: "the role for the readiness of environments is optional",
	})
	s.testUnwatchedWorkloads(t)
}
