// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNoCompiledProgramIsCommitted checks that each executable file of the repository is a script.
func TestNoCompiledProgramIsCommitted(t *testing.T) {
	const root = "../.."
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--stage", "-z")
	list.Dir = root
	output, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for entry := range strings.SplitSeq(string(output), "\x00") {
		mode, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(mode, "100755 ") {
			continue
		}
		if scripts++; !bytes.HasPrefix(read(t, os.DirFS(root), name), []byte("#!")) {
			t.Errorf("%s is executable and no script", name)
		}
	}
	if scripts == 0 {
		t.Error("git lists no script: the test is void")
	}
}
