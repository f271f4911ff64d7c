// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// deadline is more than any block takes on a busy machine.
const deadline = 2 * time.Minute

// reader is somebody who types the commands of the documentation into one shell, in a
// folder that looks like a clone of the repository.
type reader struct {
	folder string
	// state is a file with the variables and the folder of the shell so far.
	state string
}

// newReader makes the folder. Of the manifests it has copies in which texts are replaced:
// readers put their own server in the place of the one in the examples.
func newReader(t *testing.T, replace *strings.Replacer) *reader {
	t.Helper()
	root := moduleRoot(t)
	folder := t.TempDir()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && name != "artifacts" {
			if err := os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, manifest := range manifests(t, root) {
		copied := filepath.Join(folder, manifest)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			t.Fatal(err)
		}
		content := replace.Replace(readFile(t, filepath.Join(root, manifest)))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// These are as they are in a program, too, which readers build.
	const attribution = "artifacts/attribution"
	if err := os.Symlink(filepath.Join(root, attribution), filepath.Join(folder, attribution)); err != nil {
		t.Fatal(err)
	}
	return &reader{folder: folder, state: filepath.Join(t.TempDir(), "state")}
}

// manifests lists those that can be applied as they are, relative to the root.
func manifests(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	for _, folder := range []string{"artifacts/demo", "artifacts/examples"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no manifests in %s: %v", folder, err)
		}
		for _, path := range found {
			files = append(files, filepath.Join(folder, filepath.Base(path)))
		}
	}
	return files
}

// setenv sets variables of the shell.
func (r *reader) setenv(t *testing.T, variables ...string) {
	t.Helper()
	var script strings.Builder
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		fmt.Fprintf(&script, "export %s='%s'\n", name, value)
	}
	if out, err := r.run(t.Context(), script.String()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// run runs a script where the last one left off and returns all that it prints.
func (r *reader) run(ctx context.Context, script string) (string, error) {
	const frame = `set -o errexit -o nounset -o pipefail
if [ -f "$1" ]; then . "$1"; fi
eval "$2"
{ export -p; printf 'cd %q\n' "$PWD"; } > "$1"`
	command := exec.CommandContext(ctx, "bash", "-c", frame, "bash", r.state, script)
	command.Dir = r.folder
	out, err := command.CombinedOutput()
	return string(out), err
}

// follow runs blocks in order and fails the test at the first that fails or does not print
// what the documentation says. Since Git follows the cluster within a second, not at once,
// a block with output may be run again until its output is there.
func (r *reader) follow(t *testing.T, blocks []block) {
	t.Helper()
	for _, b := range blocks {
		var out string
		var failure error
		attempt := func(ctx context.Context) (bool, error) {
			out, failure = r.run(ctx, b.script)
			if failure == nil {
				failure = missing(b.prints, out)
			}
			if failure != nil && len(b.prints) == 0 {
				return false, failure
			}
			return failure == nil, nil
		}
		if err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, deadline, true, attempt); err != nil {
			t.Fatalf("%s: %v\n%s\n--- printed:\n%s", b.place, errors.Join(err, failure), b.script, out)
		}
	}
}

// missing says which of the lines are not in what was printed.
func missing(lines []string, printed string) error {
	var actual []string
	for line := range strings.SplitSeq(printed, "\n") {
		actual = append(actual, normal(line))
	}
	var absent []string
	for _, line := range lines {
		if want := normal(line); want != "" && !slices.Contains(actual, want) {
			absent = append(absent, want)
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("the documentation shows lines that are not printed:\n%s", strings.Join(absent, "\n"))
	}
	return nil
}

var (
	hash   = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	age    = regexp.MustCompile(`\b([0-9]+[smhd])+\b`)
	port   = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	blanks = regexp.MustCompile(`\s+`)
)

// normal is a line without what differs from run to run.
func normal(line string) string {
	line = hash.ReplaceAllString(line, "HASH")
	line = age.ReplaceAllString(line, "AGE")
	line = port.ReplaceAllString(line, "HOST")
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}

func TestMissing(t *testing.T) {
	printed := "NAME   COMMIT    AGE\nshop   416d600   1m3s\n"
	if err := missing([]string{"NAME  COMMIT  AGE", "", "shop  77ab01c  9s"}, printed); err != nil {
		t.Errorf("lines that differ by hash, age and width are not found: %v", err)
	}
	if err := missing([]string{"cart  77ab01c  9s"}, printed); err == nil {
		t.Error("a line that is not printed is found")
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
