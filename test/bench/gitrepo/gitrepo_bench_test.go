// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/gitrepo"
)

// manifests names that many files, a hundred in each folder.
func manifests(count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = fmt.Sprintf("clusters/one/core/v1/configmaps/namespace-%03d/name-%06d.yaml", i/100, i)
	}
	return paths
}

// flat names that many files in one folder.
func flat(count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = fmt.Sprintf("clusters/one/core/v1/namespaces/name-%06d.yaml", i)
	}
	return paths
}

// contest runs the same commits through the branch and through native git.
type contest struct {
	b      *testing.B
	paths  []string
	round  int
	branch *gitrepo.Branch
	ours   *server
	theirs native

	stageTime, pushTime, importTime, nativePushTime time.Duration
}

// newContest gives both sides their copy of the repository and a server with another copy.
func newContest(b *testing.B, origin native, paths []string) *contest {
	b.Helper()
	c := &contest{b: b, paths: paths, ours: origin.copy().serve(), theirs: origin.copy()}
	c.theirs.git("remote", "set-url", "origin", origin.copy().serve().url)
	remote := &gitrepo.Remote{URL: c.ours.url}
	b.Cleanup(remote.Close)
	err := remote.Check(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if c.branch, err = gitrepo.Load(b.Context(), remote, branchName, gitrepo.Options{}); err != nil {
		b.Fatal(err)
	}
	return c
}

// next makes commits that differ from all before; changed files are spread over the repository.
func (c *contest) next(commits, changed int) [][]change {
	made := make([][]change, commits)
	for i := range made {
		c.round++
		paths := make([]string, changed)
		for j := range paths {
			paths[j] = c.paths[(c.round*7919+j*len(c.paths)/changed)%len(c.paths)]
		}
		made[i] = changesOf(paths, "round "+strconv.Itoa(c.round))
	}
	return made
}

func (c *contest) run(commits, changed int) {
	c.b.Helper()
	work := c.next(commits, changed)
	staged := make([]gitrepo.Commit, len(work))
	for i, changes := range work {
		staged[i] = commitOf(changes)
	}
	c.stageTime += c.timed(func() { c.stage(staged) })
	c.pushTime += c.timed(func() {
		if accepted, err := c.branch.Push(c.b.Context()); err != nil || len(accepted) != commits {
			c.b.Fatalf("accepted %d of %d commits: %v", len(accepted), commits, err)
		}
	})
	c.importTime += c.timed(func() { c.theirs.fastImport(work) })
	c.nativePushTime += c.timed(func() { c.theirs.git("push", "--quiet", "origin", branchName) })
}

func (c *contest) timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

func (c *contest) stage(commits []gitrepo.Commit) {
	for _, commit := range commits {
		if _, made, err := c.branch.Stage(commit); err != nil || !made {
			c.b.Fatalf("stage: made %v, error %v", made, err)
		}
	}
}

func commitOf(changes []change) gitrepo.Commit {
	who := gitrepo.Signature{Name: "bench", Email: "bench@example.com", When: time.Unix(1700000000, 0).UTC()}
	commit := gitrepo.Commit{Author: who, Committer: who, Message: "change\n"}
	for _, change := range changes {
		commit.Changes = append(commit.Changes, gitrepo.Change{Path: change.path, Content: []byte(change.content)})
	}
	return commit
}

// check fails the benchmark unless both sides ended with the same files.
func (c *contest) check() {
	c.b.Helper()
	if ours, theirs := c.branch.Snapshot().Hash().String(), c.theirs.git("rev-parse", branchName+"^{tree}"); ours != theirs {
		c.b.Fatalf("our tree is %s, native git's is %s", ours, theirs)
	}
}

func (c *contest) report(commits int) {
	c.b.Helper()
	c.check()
	total := float64(c.b.N * commits)
	c.b.ReportMetric(float64((c.stageTime+c.pushTime).Nanoseconds())/float64(c.b.N), "ns/op")
	c.b.ReportMetric(total/c.stageTime.Seconds(), "commits/s")
	c.b.ReportMetric(c.stageTime.Seconds()/c.importTime.Seconds(), "build/native")
	c.b.ReportMetric((c.stageTime+c.pushTime).Seconds()/(c.importTime+c.nativePushTime).Seconds(), "build+push/native")
	c.b.ReportMetric(float64(c.ours.received.Load())/total, "packB/commit")
}

// BenchmarkCommit stages commits and pushes them at once over HTTP, beside git fast-import and git push. The metrics
// build/native and build+push/native are ratios of time; below 1 is faster than native git.
func BenchmarkCommit(b *testing.B) {
	for _, files := range []int{1000, 50000} {
		paths := manifests(files)
		origin := newOrigin(b, paths, 0)
		for _, size := range []struct{ commits, changed int }{{1, 1}, {1, 10}, {1, 200}, {100, 1}, {100, 10}, {20, 200}, {1000, 1}} {
			b.Run(fmt.Sprintf("files=%d/commits=%d/changed=%d", files, size.commits, size.changed), func(b *testing.B) {
				c := newContest(b, origin, paths)
				for b.Loop() {
					c.run(size.commits, size.changed)
				}
				c.report(size.commits)
			})
		}
	}
}

// BenchmarkFlatFolder makes one commit a change in a folder of 10 000 files.
func BenchmarkFlatFolder(b *testing.B) {
	paths := flat(10000)
	origin := newOrigin(b, paths, 0)
	for _, commits := range []int{1, 500} {
		b.Run(fmt.Sprintf("commits=%d", commits), func(b *testing.B) {
			c := newContest(b, origin, paths)
			for b.Loop() {
				c.run(commits, 1)
			}
			c.report(commits)
		})
	}
}

// BenchmarkSize compares building in a large repository with building in a small one.
func BenchmarkSize(b *testing.B) {
	const changed, commits = 10, 200
	var contests []*contest
	for _, files := range []int{1000, 50000} {
		paths := manifests(files)
		contests = append(contests, newContest(b, newOrigin(b, paths, 0), paths))
	}
	small, large := contests[0], contests[1]
	for b.Loop() {
		for _, c := range contests {
			var staged []gitrepo.Commit
			for _, changes := range c.next(commits, changed) {
				staged = append(staged, commitOf(changes))
			}
			c.stageTime += c.timed(func() { c.stage(staged) })
			if _, err := c.branch.Push(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(large.stageTime.Nanoseconds())/float64(b.N*commits), "ns/commit")
	b.ReportMetric(large.stageTime.Seconds()/small.stageTime.Seconds(), "50k/1k")
}

// BenchmarkStart reads the tip of a branch of 50 000 files and 1000 commits, beside a native fetch of depth 1 without
// blobs, and tells what the branch then holds in memory.
func BenchmarkStart(b *testing.B) {
	paths := manifests(50000)
	served := newOrigin(b, paths, 1000).copy()
	url := served.serve().url
	var ours, theirs time.Duration
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := time.Now()
		remote := &gitrepo.Remote{URL: url}
		branch, err := gitrepo.Load(b.Context(), remote, branchName, gitrepo.Options{})
		ours += time.Since(start)
		if err != nil || branch.Snapshot().Len("") != len(paths) {
			b.Fatalf("load: %v", err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(branch)
		remote.Close()

		target := native{b: b, path: b.TempDir()}
		target.git("init", "--quiet", "--bare")
		start = time.Now()
		target.git("fetch", "--quiet", "--depth=1", "--filter=blob:none", url, branchName)
		theirs += time.Since(start)
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/op")
	b.ReportMetric(ours.Seconds()/theirs.Seconds(), "start/native")
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "heapMiB")
}
