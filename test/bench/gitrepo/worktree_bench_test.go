// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// BenchmarkWorkTree pushes a thousand changed files of a branch of 10 000 in one commit, and compares this with a work tree of
// go-git, which other tools use. go-git reads the whole work tree again for each added file, which would take minutes for all
// files; so only sampled of them are written and added, and the time is extrapolated.
func BenchmarkWorkTree(b *testing.B) {
	const files, changed, sampled = 10000, 1000, 20
	paths := manifests(files)
	origin := newOrigin(b, paths, 0)
	tool := filepath.Join(b.TempDir(), "gogit")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", tool, ".")
	build.Dir = filepath.Join("..", "gogit")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("failed to build gogit: %v\n%s", err, output)
	}
	c := newContest(b, origin, paths)
	var theirs best
	for b.Loop() {
		work := c.next(rounds, changed)
		for _, changes := range work {
			c.pushTime.add(timed(func() {
				c.testCluster([]gitrepo.Commit{commitOf(changes)})
				if _, err := c.branch.Push(b.Context()); err != nil {
					b.Fatal(err)
				}
			}))
		}
		whole, adding := goGit(b, tool, origin.copy().serve().url, work[0][:sampled])
		theirs.add(whole - adding + adding*changed/sampled)
	}
	b.ReportMetric(c.pushTime.seconds()*1e9, "ns/op")
	b.ReportMetric(theirs.seconds()/c.pushTime.seconds(), "gogit/ours")
}

// goGit pushes changes with a work tree and returns the total time, and the time to add the files.
func goGit(b *testing.B, tool, url string, changes []change) (whole, adding time.Duration) {
	b.Helper()
	contents := map[string]string{}
	for _, change := range changes {
		contents[change.path] = change.content
	}
	input, err := json.Marshal(contents)
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(b.Context(), tool, url, filepath.Join(b.TempDir(), "work"))
	command.Stdin, command.Stderr, command.Env = bytes.NewReader(input), os.Stderr, environment()
	output, err := command.Output()
	if err != nil {
		b.Fatalf("go-git: %v", err)
	}
	if _, err := fmt.Sscan(string(output), &whole, &adding); err != nil {
		b.Fatalf("gogit printed %q: %v", output, err)
	}
	return whole, adding
}
