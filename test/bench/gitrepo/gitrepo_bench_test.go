// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// manifests returns the paths of count files, a hundred in each folder.
func manifests(count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = fmt.Sprintf("clusters/one/core/v1/configmaps/namespace-%03d/name-%06d.yaml", i/100, i)
	}
	return paths
}

// flat returns the paths of count files in one folder.
func flat(count int) []string {
	paths := make([]string, count)
	for i := range paths {
		paths[i] = fmt.Sprintf("clusters/one/core/v1/namespaces/name-%06d.yaml", i)
	}
	return paths
}

// contest makes the same commits with the branch and with native git.
type contest struct {
	b      *testing.B
	paths  []string
	round  int
	branch *gitrepo.Branch
	ours   *server
	theirs native

	// The fastest round of each, which other load on the machine affects least.
	stageTime, pushTime    best
	importTime, nativeTime best
}

// rounds is the number of rounds in each iteration of a benchmark.
const rounds = 3

// best is the shortest measured time.
type best time.Duration

func (t *best) add(seen time.Duration) {
	if *t == 0 || best(seen) < *t {
		*t = best(seen)
	}
}

func (t *best) seconds() float64 { return time.Duration(*t).Seconds() }

// newContest creates a copy of the repository, and a server with another copy, for both sides.
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

// next returns commits that differ from all previous ones; the changed files are spread over the repository.
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
	stageTime := timed(func() { c.testCluster(staged) })
	c.stageTime.add(stageTime)
	c.pushTime.add(stageTime + timed(func() {
		if accepted, err := c.branch.Push(c.b.Context()); err != nil || len(accepted) != commits {
			c.b.Fatalf("accepted %d of %d commits: %v", len(accepted), commits, err)
		}
	}))
	importTime := timed(func() { c.theirs.fastImport(work) })
	c.importTime.add(importTime)
	c.nativeTime.add(importTime + timed(func() { c.theirs.git("push", "--quiet", "origin", branchName) }))
}

func timed(work func()) time.Duration {
	start := time.Now()
	work()
	return time.Since(start)
}

func (c *contest) testCluster(commits []gitrepo.Commit) {
	for _, commit := range commits {
		if _, made, err := c.branch.Stage(commit); err != nil || !made {
			c.b.Fatalf("commit: committed %v, error %v", made, err)
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

// check fails the benchmark unless both sides have the same files.
func (c *contest) check() {
	c.b.Helper()
	ours, _ := c.branch.Snapshot().FolderHash("")
	if theirs := c.theirs.git("rev-parse", branchName+"^{tree}"); ours.String() != theirs {
		c.b.Fatalf("tree = %s, tree of native git = %s", ours, theirs)
	}
}

func (c *contest) report(commits int) {
	c.b.Helper()
	c.check()
	c.b.ReportMetric(c.pushTime.seconds()*1e9, "ns/op")
	c.b.ReportMetric(float64(commits)/c.stageTime.seconds(), "commits/s")
	c.b.ReportMetric(c.stageTime.seconds()/c.importTime.seconds(), "build/native")
	c.b.ReportMetric(c.pushTime.seconds()/c.nativeTime.seconds(), "build+push/native")
	c.b.ReportMetric(float64(c.ours.received.Load())/float64(c.b.N*rounds*commits), "packB/commit")
}

// BenchmarkCommit stages commits and pushes them together over HTTP, and compares this with git fast-import and git push.
// The metrics build/native and build+push/native are ratios of time; below 1 is faster than native git.
func BenchmarkCommit(b *testing.B) {
	for _, files := range []int{1000, 50000} {
		paths := manifests(files)
		origin := newOrigin(b, paths, 0)
		for _, size := range []struct{ commits, changed int }{{1, 1}, {1, 10}, {1, 200}, {100, 1}, {100, 10}, {20, 200}, {1000, 1}} {
			b.Run(fmt.Sprintf("files=%d/commits=%d/changed=%d", files, size.commits, size.changed), func(b *testing.B) {
				c := newContest(b, origin, paths)
				for b.Loop() {
					for range rounds {
						c.run(size.commits, size.changed)
					}
				}
				c.report(size.commits)
			})
		}
	}
}

// BenchmarkFlatFolder makes one commit for each change in a folder of 10 000 files.
func BenchmarkFlatFolder(b *testing.B) {
	paths := flat(10000)
	origin := newOrigin(b, paths, 0)
	for _, commits := range []int{1, 500} {
		b.Run(fmt.Sprintf("commits=%d", commits), func(b *testing.B) {
			c := newContest(b, origin, paths)
			for b.Loop() {
				for range rounds {
					c.run(commits, 1)
				}
			}
			c.report(commits)
		})
	}
}

// BenchmarkSize compares commits in a large repository with commits in a small one.
func BenchmarkSize(b *testing.B) {
	const changed, commits = 10, 200
	var contests []*contest
	for _, files := range []int{1000, 50000} {
		paths := manifests(files)
		contests = append(contests, newContest(b, newOrigin(b, paths, 0), paths))
	}
	small, large := contests[0], contests[1]
	for b.Loop() {
		for i := range rounds * len(contests) {
			c := contests[i%len(contests)]
			var staged []gitrepo.Commit
			for _, changes := range c.next(commits, changed) {
				staged = append(staged, commitOf(changes))
			}
			c.stageTime.add(timed(func() { c.testCluster(staged) }))
			if _, err := c.branch.Push(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(large.stageTime.seconds()*1e9/commits, "ns/commit")
	b.ReportMetric(large.stageTime.seconds()/small.stageTime.seconds(), "50k/1k")
}

// BenchmarkStart reads the tip of a branch of 50 000 files and 1000 commits, compares this with a native fetch of depth 1
// without blobs, and reports the memory of the branch.
func BenchmarkStart(b *testing.B) {
	paths := manifests(50000)
	served := newOrigin(b, paths, 1000).copy()
	url := served.serve().url
	var ours, theirs best
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		remote := &gitrepo.Remote{URL: url}
		var branch *gitrepo.Branch
		ours.add(timed(func() {
			var err error
			if branch, err = gitrepo.Load(b.Context(), remote, branchName, gitrepo.Options{}); err != nil {
				b.Fatal(err)
			}
		}))
		runtime.GC()
		runtime.ReadMemStats(&after)
		if files := countFiles(branch); files != len(paths) {
			b.Fatalf("branch has %d files", files)
		}
		remote.Close()

		target := native{b: b, path: b.TempDir()}
		target.git("init", "--quiet", "--bare")
		theirs.add(timed(func() { target.git("fetch", "--quiet", "--depth=1", "--filter=blob:none", url, branchName) }))
	}
	b.ReportMetric(ours.seconds()*1e9, "ns/op")
	b.ReportMetric(ours.seconds()/theirs.seconds(), "start/native")
	b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/(1<<20), "heapMiB")
}

// BenchmarkPlainServer reads a branch of 100 000 files, and one of the files, from a server that supports neither filters nor
// requests for single objects, and compares this with a fetch, which must transfer all objects, too.
func BenchmarkPlainServer(b *testing.B) {
	paths := manifests(100_000)
	served := newOrigin(b, paths, 0).copy()
	served.git("config", "uploadpack.allowFilter", "false")
	url := served.serve().url
	var reading, finding, theirs best
	for b.Loop() {
		remote := &gitrepo.Remote{URL: url}
		var branch *gitrepo.Branch
		reading.add(timed(func() {
			var err error
			if branch, err = gitrepo.Load(b.Context(), remote, branchName, gitrepo.Options{}); err != nil {
				b.Fatal(err)
			}
		}))
		hash, _ := branch.Snapshot().Lookup(paths[len(paths)/2])
		finding.add(timed(func() {
			if contents, err := branch.Contents(b.Context(), hash); err != nil || contents[hash] == nil {
				b.Fatalf("content of the file = %q, %v", contents[hash], err)
			}
		}))
		remote.Close()

		target := native{b: b, path: b.TempDir()}
		target.git("init", "--quiet", "--bare")
		theirs.add(timed(func() { target.git("fetch", "--quiet", "--depth=1", url, branchName) }))
	}
	b.ReportMetric(reading.seconds()*1e9, "ns/op")
	b.ReportMetric(reading.seconds()/theirs.seconds(), "start/native")
	b.ReportMetric(finding.seconds()/theirs.seconds(), "file/native")
}

// countFiles returns the number of files of a branch.
func countFiles(branch *gitrepo.Branch) (files int) {
	_ = branch.Snapshot().Walk("", func(string, gitrepo.Hash) error {
		files++
		return nil
	})
	return files
}
