// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestDirectoriesDoNotHoldPaths compares the memory of a directory of new files with the length of their paths.
func TestDirectoriesDoNotHoldPaths(t *testing.T) {
	const files = 5_000
	folder := strings.Repeat(strings.Repeat("d", 99)+"/", 30)
	root, before := emptyDirectory(), heapBytes()
	for number := range files {
		root, _, _ = applyChanges(root, []Change{{Path: fmt.Sprintf("%s%d.yaml", folder, number), Content: []byte("kind: ConfigMap")}})
	}
	held := heapBytes() - before
	if paths := int64(files * len(folder)); held > paths/5 {
		t.Errorf("%d bytes are held of files with %d bytes of paths", held, paths)
	}
	if d := root.descend(folder[:len(folder)-1]); len(d.entries) != files {
		t.Errorf("%d files, want %d", len(d.entries), files)
	}
}

// heapBytes returns the size of the live heap.
func heapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
