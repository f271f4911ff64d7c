// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// testPage runs the commands of the page on installing that verify a release, except for those that need GitHub. The one that reads the
// provenance prints the version and the commit.
func (b *built) testPage(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(b.cosign)+":"+os.Getenv("PATH"))
	of := strings.NewReplacer("v0.1.0", b.version, ":0.1.0", ":"+strings.TrimPrefix(b.version, "v"), "ghcr.io/configbutler/", b.registry+"/team/")
	ran := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^\$ ((cosign|sha256sum|jq) .*)$`).FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "install.md")), -1) {
		ran[found[2]]++
		output := do(t, b.dist, "sh", "-c", of.Replace(found[1]))
		head := do(t, b.clone, "git", "rev-parse", "HEAD")
		if found[2] == "jq" && output != b.version+"\n"+head {
			t.Errorf("%s prints\n%swant\n%s\n%s", found[1], output, b.version, head)
		}
	}
	if ran["cosign"] < 6 || ran["sha256sum"] != 2 || ran["jq"] != 1 {
		t.Errorf("the page has the commands %v", ran)
	}
}
