// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "testing"

// TestCatalogs runs its subtests one after the other on one cluster. Each uses its own namespaces, and leaves the server running
// with a short batch window.
func TestCatalogs(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testCluster, *testing.T)
	}{
		{"BatchWindow", (*testCluster).testBatchWindow},
		{"AllKinds", (*testCluster).testAllKinds},
		{"CatalogEdits", (*testCluster).testCatalogEdits},
		{"EditPermissions", (*testCluster).testEditPermissions},
		{"UnreachableSource", (*testCluster).testUnreachableSource},
		{"MissingWorkload", (*testCluster).testMissingWorkload},
		{"Pause", (*testCluster).testPause},
		{"Preview", (*testCluster).testPreview},
		{"SeveralCatalogs", (*testCluster).testSeveralCatalogs},
		{"DeletedCatalog", (*testCluster).testDeletedCatalog},
		{"CommitsInRecords", (*testCluster).testCommitsInRecords},
		{"Rollback", (*testCluster).testRollback},
		{"RecordStates", (*testCluster).testRecordStates},
		{"Events", (*testCluster).testEvents},
		{"ArchiveInFiles", (*testCluster).testArchiveInFiles},
		{"ArchiveInGit", (*testCluster).testArchiveInGit},
		{"Restart", (*testCluster).testRestart},
		{"ExpiredWatch", (*testCluster).testExpiredWatch},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}
