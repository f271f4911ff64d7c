// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import "testing"

// TestCatalogs runs its subtests one after the other on one cluster. Each uses its own namespaces, and leaves the server running
// with a short batch window.
func TestCatalogs(t *testing.T) {
	s := newStage(t)
	for _, test := range []struct {
		name string
		run  func(*stage, *testing.T)
	}{
		{"BatchWindow", (*stage).testBatchWindow},
		{"AllKinds", (*stage).testAllKinds},
		{"CatalogEdits", (*stage).testCatalogEdits},
		{"EditPermissions", (*stage).testEditPermissions},
		{"UnreachableSource", (*stage).testUnreachableSource},
		{"MissingWorkload", (*stage).testMissingWorkload},
		{"Pause", (*stage).testPause},
		{"Preview", (*stage).testPreview},
		{"SeveralCatalogs", (*stage).testSeveralCatalogs},
		{"DeletedCatalog", (*stage).testDeletedCatalog},
		{"CommitsInRecords", (*stage).testCommitsInRecords},
		{"Rollback", (*stage).testRollback},
		{"RecordStates", (*stage).testRecordStates},
		{"Events", (*stage).testEvents},
		{"ArchiveInFiles", (*stage).testArchiveInFiles},
		{"ArchiveInGit", (*stage).testArchiveInGit},
		{"Restart", (*stage).testRestart},
		{"ExpiredWatch", (*stage).testExpiredWatch},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}
