// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// TestRefusedVersions checks that neither make nor a shell runs what a version contains.
func TestRefusedVersions(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	mark, output := filepath.Join(t.TempDir(), "mark"), filepath.Join(t.TempDir(), "dist")
	for _, version := range []string{
		"", "1.2.3", "v1.2", "v1.2.3 ", "v1.2.3/../x", "v1.2.3'; touch " + mark + "; '", `v1.2.3"; touch ` + mark + `; "`, "v1.2.3\ntouch " + mark,
		"v1.2.3`touch " + mark + "`", "v1.2.3-$(touch " + mark + ")", "v1.2.3-$(shell touch " + mark + ")", "v1.2.3-$${HOME}", "v1.2.3;touch\t" + mark,
	} {
		for place, command := range map[string]*exec.Cmd{
			"argument":    exec.CommandContext(t.Context(), "make", "release", "RELEASE_OUTPUT="+output, "VERSION="+version),
			"environment": exec.CommandContext(t.Context(), "make", "release", "RELEASE_OUTPUT="+output),
		} {
			command.Dir, command.Env = root, append(os.Environ(), "VERSION="+version)
			printed, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(printed), "VERSION is not like v1.2.3") &&
				!strings.Contains(string(printed), "VERSION must not have a dollar sign") {
				t.Errorf("%q as %s: %v\n%s", version, place, err, printed)
			}
			for _, path := range []string{mark, output} {
				if _, err := os.Stat(path); err == nil {
					t.Fatalf("%q as %s has made %s", version, place, path)
				}
			}
		}
	}
}
