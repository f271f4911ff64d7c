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

// compileOnce returns an environment in which go uses the same cached builds in every folder, and for the image.
func compileOnce() []string { return append(os.Environ(), "GOFLAGS=-trimpath", "CGO_ENABLED=0") }

// deadline is longer than any block takes on a busy machine. One of them compiles the programs.
const deadline = 10 * time.Minute

// reader runs the commands of the documentation in one shell, in a folder that looks like a clone of the repository.
type reader struct {
	folder string
	// state is a file with the variables and the folder of the shell so far.
	state string
	// patient is the folder of the shell's kubectl.
	patient string
	// operator stops and starts the server, if the pages need that.
	operator *operator
}

// newReader creates the folder. Texts in its copies of the manifests are replaced, because readers replace the server of the examples
// by their own.
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
	// These are unchanged, because they are embedded in a program or in a rendered chart.
	for _, embedded := range []string{"artifacts/attribution", "artifacts/audit", "artifacts/install.yaml"} {
		if err := os.Symlink(filepath.Join(root, embedded), filepath.Join(folder, embedded)); err != nil {
			t.Fatal(err)
		}
	}
	r := &reader{folder: folder, state: filepath.Join(t.TempDir(), "state"), patient: filepath.Join(root, "test/docs/testdata/patient")}
	// kubectl caches discovery by the address of the API server, which may be that of another test's cluster later.
	r.setenv(t, "KUBECACHEDIR="+t.TempDir())
	return r
}

// manifests returns the manifests that can be applied, relative to the root.
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

// run runs a script in the state of the previous one and returns its output. Its kubectl is testdata/patient/kubectl, also after a script
// that sets PATH.
func (r *reader) run(ctx context.Context, script string) (string, error) {
	const frame = `set -o errexit -o nounset -o pipefail
if [ -f "$1" ]; then . "$1"; fi
PATH="$3:${PATH#"$3:"}"
eval "$2"
{ export -p; printf 'cd %q\n' "$PWD"; } > "$1"`
	command := exec.CommandContext(ctx, "bash", "-c", frame, "bash", r.state, script, r.patient)
	command.Dir = r.folder
	command.Env = compileOnce()
	out, err := command.CombinedOutput()
	return string(out), err
}

// follow runs blocks in order. It fails the test at the first block that fails or whose output differs.
func (r *reader) follow(t *testing.T, blocks []block) {
	t.Helper()
	for _, written := range blocks {
		b, does := withStandIns(written)
		carryOut := func(ctx context.Context) error { return r.carryOut(ctx, b) }
		if does != "" && r.operator != nil { // Pods are restarted by their node.
			carryOut = func(ctx context.Context) error {
				return r.operator.around(ctx, does, func(ctx context.Context) error { return r.carryOut(ctx, b) })
			}
		}
		if err := carryOut(t.Context()); err != nil {
			t.Fatalf("%s: %v\n--- of:\n%s", b.place, err, b.script)
		}
	}
}

// carryOut runs a block. A block with output is retried until its output matches, because Git follows the cluster with a delay of up to
// a second. A block with kubectl diff is retried because a controller may write an object while kubectl compares it. New files in the
// folder are removed before a retry.
func (r *reader) carryOut(ctx context.Context, b block) error {
	before, err := os.ReadDir(r.folder)
	if err != nil {
		return err
	}
	var failure error
	err = wait.PollUntilContextTimeout(ctx, time.Second, deadline, true, func(ctx context.Context) (bool, error) {
		err := r.attempt(ctx, b)
		if err == nil || failure == nil || ctx.Err() == nil { // keep the previous error of an interrupted attempt
			failure = err
		}
		if err == nil || len(b.prints) == 0 && !strings.Contains(b.script, "kubectl diff") {
			return true, nil
		}
		return false, r.tidy(before)
	})
	return errors.Join(err, failure)
}

// attempt runs a block once.
func (r *reader) attempt(ctx context.Context, b block) error {
	out, err := r.run(ctx, b.script)
	if err == nil {
		err = missing(b.prints, out)
	}
	if err != nil {
		return fmt.Errorf("%w\n--- printed:\n%s", err, out)
	}
	return nil
}

// tidy removes new files from the folder.
func (r *reader) tidy(before []os.DirEntry) error {
	now, err := os.ReadDir(r.folder)
	for _, entry := range now {
		if !slices.ContainsFunc(before, func(old os.DirEntry) bool { return old.Name() == entry.Name() }) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.folder, entry.Name())))
		}
	}
	return err
}

// anything in a line of the documentation matches any text.
const anything = "..."

// missing returns an error with the lines that were not printed.
func missing(lines []string, printed string) error {
	var actual []string
	for line := range strings.SplitSeq(printed, "\n") {
		actual = append(actual, normal(line))
	}
	var absent []string
	for _, line := range lines {
		if want := normal(line); want != "" && !slices.ContainsFunc(actual, pattern(want).MatchString) {
			absent = append(absent, want)
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("lines of the documentation are not printed:\n%s", strings.Join(absent, "\n"))
	}
	return nil
}

// pattern returns the expression for a line of the documentation.
func pattern(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), regexp.QuoteMeta(anything), ".*") + "$")
}

var (
	hash   = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	age    = regexp.MustCompile(`\b([0-9]+[smhd])+\b`)
	suffix = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	// Either signal may arrive first.
	signal = regexp.MustCompile(`\b(audit|admission)\b`)
	port   = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	blanks = regexp.MustCompile(`\s+`)
)

// normal returns a line without the parts that differ between runs.
func normal(line string) string {
	line = hash.ReplaceAllString(line, "HASH")
	line = age.ReplaceAllString(line, "AGE")
	line = signal.ReplaceAllString(line, "SIGNAL")
	line = suffix.ReplaceAllString(line, "-SUFFIX")
	line = port.ReplaceAllString(line, "HOST")
	return strings.TrimSpace(blanks.ReplaceAllString(line, " "))
}

func TestMissing(t *testing.T) {
	printed := "NAME   COMMIT    AGE\nshop-x7k2p   416d600   1m3s\n"
	if err := missing([]string{"NAME  COMMIT  AGE", "", "shop-b4d9q  77ab01c  9s"}, printed); err != nil {
		t.Errorf("lines with another suffix, hash, age and width: %v", err)
	}
	if err := missing([]string{"shop-...  416d600  ...", "tw... 1m3s"}, printed+"twelve 1m3s\n"); err != nil {
		t.Errorf("lines with dots: %v", err)
	}
	if err := missing([]string{"cart...  77ab01c  9s"}, printed); err == nil {
		t.Error("dots match the text beside them")
	}
	if err := missing([]string{"cart  77ab01c  9s"}, printed); err == nil {
		t.Error("line that was not printed was found")
	}
}

// TestBlocksAreRetried checks that a block that fails after it has created a folder is retried without the folder.
func TestBlocksAreRetried(t *testing.T) {
	r := newReader(t, strings.NewReplacer())
	counter := filepath.Join(t.TempDir(), "counter")
	script := "mkdir production\necho . >> " + counter + "\ntest $(wc -l < " + counter + ") = 3\necho done"
	if err := r.carryOut(t.Context(), block{script: script, prints: []string{"done"}}); err != nil {
		t.Error(err)
	}
	if err := r.carryOut(t.Context(), block{script: "echo why; false"}); err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("error of a failing block: %v", err)
	}
}

// TestPatientKubectl checks that `kubectl wait` is repeated for an object without conditions, and waits longer than a page says.
func TestPatientKubectl(t *testing.T) {
	r := newReader(t, strings.NewReplacer())
	folder := t.TempDir()
	const first = "#!/bin/sh\nif [ $1 = wait ] && mkdir $0.called 2> /dev/null; then\n" +
		"  echo '.status.conditions accessor error: <nil> is of the type <nil>' >&2; exit 1\nfi\necho \"$@\"; test $2 != lost\n"
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(first), 0o755); err != nil {
		t.Fatal(err)
	}
	r.setenv(t, "PATH="+folder+":/usr/local/bin:/usr/bin:/bin")
	for script, want := range map[string]string{
		"kubectl get pods":  "get pods\n",
		"kubectl wait pods": "wait pods --timeout=300s\n",
		"kubectl wait pods --timeout=60s && PATH=" + folder + ":$PATH": "wait pods --timeout=60s --timeout=300s\n",
	} {
		if out, err := r.run(t.Context(), script); err != nil || out != want {
			t.Errorf("%s printed %q: %v", script, out, err)
		}
	}
	if out, err := r.run(t.Context(), "kubectl wait lost"); err == nil {
		t.Errorf("a failed wait succeeded: %q", out)
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
