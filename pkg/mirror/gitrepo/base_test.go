// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// proposal is a branch with the base main, of which only the folder cluster is managed.
type proposal struct {
	*gitrepo.Branch
	t      *testing.T
	r      repository
	w      writer
	remote *gitrepo.Remote
}

// proposals runs a test on every transport, with a base that has the files cluster/a and docs/x.
func proposals(t *testing.T, test func(t *testing.T, p *proposal)) {
	t.Helper()
	transports(t, func(t *testing.T, r repository, url string) {
		w := r.clone()
		w.write("docs/x", "x\n")
		w.first("cluster/a", "1\n")
		p := &proposal{t: t, r: r, w: w, remote: newRemote(t, url)}
		p.load(gitrepo.Hash{})
		test(t, p)
		r.fsck()
	})
}

func (p *proposal) load(since gitrepo.Hash) {
	p.t.Helper()
	branch, err := gitrepo.Load(p.t.Context(), p.remote, "proposed", gitrepo.Options{
		ManagedFolders: []string{"cluster"}, Base: "main", Since: since,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Branch = branch
}

func (p *proposal) refresh() {
	p.t.Helper()
	if err := p.Refresh(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proposal) rebase(after gitrepo.Hash) {
	p.t.Helper()
	if _, err := p.Rebase(after, ours, nil); err != nil {
		p.t.Fatal(err)
	}
	push(p.t, p.Branch)
}

// ours is for branches that nobody else has pushed to.
func ours(gitrepo.Hash) bool { return true }

// subjects returns the subjects of the commits that main lacks, oldest first.
func (p *proposal) subjects() string {
	p.t.Helper()
	return strings.ReplaceAll(strings.TrimSpace(p.r.git("log", "--reverse", "--format=%s", "main..proposed")), "\n", " ")
}

func (p *proposal) propose(message string, changes ...gitrepo.Change) gitrepo.Hash {
	p.t.Helper()
	hash, staged, err := p.Stage(commitOf(message, changes...))
	if err != nil || !staged {
		p.t.Fatalf("staged %v, error %v", staged, err)
	}
	push(p.t, p.Branch)
	return hash
}

// wantProposed expects the files that differ from the base, as "path=operation" with the subject's author.
func (p *proposal) wantProposed(want ...string) {
	p.t.Helper()
	var got []string
	for _, file := range p.Proposed(gitrepo.Hash{}) {
		operation := "changed"
		switch {
		case file.Base.IsZero():
			operation = "added"
		case file.Hash.IsZero():
			operation = "removed"
		}
		got = append(got, file.Path+" "+operation+" by "+file.Author)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.t.Errorf("wrong files (-want +got):\n%s", diff)
	}
}

func TestBranchWithBase(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		if _, found := p.Snapshot().Lookup("cluster/a"); !found {
			t.Error("a new branch lacks the files of its base")
		}
		p.propose("one", set("cluster/b", "b\n"))
		p.propose("two", set("cluster/a", "2\n"))
		p.propose("three", set("cluster/c", "c\n"), remove("cluster/b"))
		want := []string{"cluster/a changed by bot", "cluster/c added by bot"}
		p.wantProposed(want...)
		if p.subjects() != "one two three" || p.Behind() {
			t.Errorf("commits %q, behind %v", p.subjects(), p.Behind())
		}
		p.load(gitrepo.Hash{}) // Another process.
		p.wantProposed(want...)
		if got := len(p.Ahead()); got != 3 || p.Behind() {
			t.Errorf("%d commits ahead, behind %v", got, p.Behind())
		}
	})
}

func TestRebaseOntoMovedBase(t *testing.T) {
	for name, restart := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			proposals(t, func(t *testing.T, p *proposal) {
				p.propose("one", set("cluster/a", "2\n"))
				p.propose("two", set("cluster/b", "b\n"), set("cluster/sub/c", "c\n"))
				p.w.write("docs/x", "theirs\n")
				p.w.write("cluster/theirs", "theirs\n")
				p.w.push("theirs")
				if restart {
					p.load(gitrepo.Hash{})
				} else {
					p.refresh()
				}
				if !p.Behind() {
					t.Fatal("the branch is not behind")
				}
				p.rebase(gitrepo.Hash{})
				p.wantProposed("cluster/a changed by bot", "cluster/b added by bot", "cluster/sub/c added by bot")
				if p.subjects() != "one two" || p.Behind() {
					t.Errorf("commits %q, behind %v", p.subjects(), p.Behind())
				}
				files := p.r.git("ls-tree", "-r", "--name-only", "proposed")
				if files != "cluster/a\ncluster/b\ncluster/sub/c\ncluster/theirs\ndocs/x\n" {
					t.Errorf("files %q", files)
				}
				if got := p.r.git("show", "proposed:docs/x") + p.r.git("show", "proposed:cluster/a"); got != "theirs\n2\n" {
					t.Errorf("contents %q", got)
				}
				p.propose("three", set("cluster/d", "d\n"))
			})
		})
	}
}

func TestMergedCommits(t *testing.T) {
	merges := map[string]func(w writer){
		"merge":        func(w writer) { w.git("merge", "--quiet", "--no-ff", "--message=merged", "origin/proposed") },
		"fast-forward": func(w writer) { w.git("merge", "--quiet", "--ff-only", "origin/proposed") },
		"rebase": func(w writer) {
			w.write("docs/y", "y\n")
			w.push("before")
			w.git("cherry-pick", "main..origin/proposed")
		},
		"squash": func(w writer) {
			w.git("merge", "--quiet", "--squash", "origin/proposed")
			w.git("commit", "--quiet", "--message=squashed")
		},
	}
	for name, merge := range merges {
		for process, restart := range map[string]bool{"same": false, "new": true} {
			t.Run(name+"/"+process, func(t *testing.T) {
				proposals(t, func(t *testing.T, p *proposal) {
					p.propose("one", set("cluster/a", "2\n"))
					merged := p.propose("two", set("cluster/a", "3\n"), set("cluster/b", "b\n"))
					p.w.git("fetch", "--quiet", "origin")
					merge(p.w)
					p.w.git("push", "--quiet", "origin", "HEAD:main")
					p.propose("late", set("cluster/late", "late\n"))
					if restart {
						p.load(gitrepo.Hash{})
					} else {
						p.refresh()
					}
					if p.Behind() == (name == "fast-forward") {
						t.Fatalf("behind: %v", p.Behind())
					}
					if p.Behind() {
						p.rebase(merged)
					}
					p.wantProposed("cluster/late added by bot")
					if p.subjects() != "late" {
						t.Errorf("commits %q", p.subjects())
					}
				})
			})
		}
	}
}

func TestEqualCommitsAreDropped(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		p.propose("one", set("cluster/a", "2\n"))
		p.propose("two", set("cluster/a", "3\n"))
		p.w.write("cluster/a", "3\n")
		theirs := p.w.push("theirs")
		p.refresh()
		p.rebase(gitrepo.Hash{}) // It is not known that what they have merged is this.
		p.wantProposed()
		if p.Behind() || len(p.Ahead()) != 0 {
			t.Errorf("behind %v, %d ahead", p.Behind(), len(p.Ahead()))
		}
		p.propose("three", set("cluster/b", "b\n"))
		if parent := strings.TrimSpace(p.r.git("rev-parse", "proposed^")); parent != theirs {
			t.Errorf("parent %s, want the base %s", parent, theirs)
		}
	})
}

func TestSinceEndsWhatIsProposed(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		declined := p.propose("declined", set("cluster/a", "2\n"))
		p.load(declined)
		p.wantProposed()
		if hash, _ := p.Snapshot().Lookup("cluster/a"); hash != gitrepo.BlobHash([]byte("1\n")) {
			t.Error("the branch does not start from its base")
		}
		p.load(gitrepo.Hash{})
		p.propose("kept", set("cluster/b", "b\n"))
		p.load(declined)
		p.wantProposed("cluster/b added by bot")
		if !p.Behind() {
			t.Fatal("the branch is not behind, but its commits are on a declined one")
		}
		p.rebase(gitrepo.Hash{})
		if p.subjects() != "kept" {
			t.Errorf("commits %q", p.subjects())
		}
	})
}

func TestLostBranch(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		tip := p.propose("one", set("cluster/a", "2\n"))
		p.r.git("update-ref", "-d", "refs/heads/proposed")
		p.refresh()
		if !p.Missing() {
			t.Fatal("the branch is not missing")
		}
		if err := p.Recreate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(p.r.git("rev-parse", "proposed")); got != tip.String() || p.Missing() {
			t.Errorf("tip %s, missing %v", got, p.Missing())
		}
		p.r.git("update-ref", "-d", "refs/heads/proposed")
		p.r.git("reflog", "expire", "--expire=now", "--all")
		p.r.git("gc", "--quiet", "--prune=now")
		p.refresh()
		var lost *gitrepo.Error
		if err := p.Recreate(t.Context()); !errors.As(err, &lost) || lost.Kind != gitrepo.Rejected {
			t.Fatalf("error %v, want one that the remote has rejected", err)
		}
		p.StartAnew()
		p.propose("two", set("cluster/b", "b\n"))
		p.wantProposed("cluster/b added by bot")
	})
}

// proposeBehind proposes the commit "one", after which the base moves.
func (p *proposal) proposeBehind() {
	p.t.Helper()
	p.propose("one", set("cluster/a", "2\n"))
	p.w.write("docs/x", "2\n")
	p.w.push("theirs")
	p.refresh()
}

func TestFailedRebaseKeepsCommits(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		p.proposeBehind()
		p.r.hook("pre-receive", "exit 1\n")
		if _, err := p.Rebase(gitrepo.Hash{}, ours, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Push(t.Context()); err == nil {
			t.Fatal("the push succeeds")
		}
		p.r.hook("pre-receive", "exit 0\n")
		p.refresh()
		p.wantProposed("cluster/a changed by bot")
		p.rebase(gitrepo.Hash{})
		if p.subjects() != "one" {
			t.Errorf("commits %q", p.subjects())
		}
	})
}

// TestRebaseThatIsNotPushedKeepsCommits has an error between a rebase and its push.
func TestRebaseThatIsNotPushedKeepsCommits(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		p.proposeBehind()
		if _, err := p.Rebase(gitrepo.Hash{}, ours, nil); err != nil {
			t.Fatal(err)
		}
		p.refresh()
		p.wantProposed("cluster/a changed by bot")
		p.rebase(gitrepo.Hash{})
		p.refresh()
		if p.subjects() != "one" {
			t.Errorf("commits %q", p.subjects())
		}
	})
}

func TestForeignCommitOnProposedBranch(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		p.propose("one", set("cluster/a", "2\n"))
		p.w.git("fetch", "--quiet", "origin")
		p.w.git("checkout", "--quiet", "--track", "origin/proposed")
		p.w.write("cluster/review", "r\n")
		p.w.git("add", "--all")
		p.w.git("commit", "--quiet", "--message=review")
		p.w.git("push", "--quiet", "origin", "HEAD:proposed")
		stage(t, p.Branch, set("cluster/b", "b\n"))
		if _, err := p.Push(t.Context()); !errors.Is(err, gitrepo.ErrMoved) {
			t.Fatalf("error %v, want ErrMoved", err)
		}
		p.refresh()
		p.propose("two", set("cluster/b", "b\n"))
		if p.subjects() != "one review two" {
			t.Errorf("commits %q", p.subjects())
		}
		theirs := gitrepo.ParseHash(strings.TrimSpace(p.r.git("rev-parse", "proposed^")))
		p.w.git("checkout", "--quiet", "main")
		p.w.write("docs/x", "2\n")
		p.w.push("theirs")
		p.refresh()
		signed := 0
		tips, err := p.Rebase(gitrepo.Hash{}, func(commit gitrepo.Hash) bool { return commit != theirs }, func([]byte) (string, error) {
			signed++
			return "signature", nil
		})
		if err != nil || signed != 2 || len(p.Staged()) != 2 || tips[theirs] != p.Staged()[0] {
			t.Fatalf("error %v, %d signatures, commits %v, tips %v", err, signed, p.Staged(), tips)
		}
		push(t, p.Branch)
		if p.subjects() != "one two" {
			t.Errorf("commits %q after the rebase", p.subjects())
		}
		p.wantProposed("cluster/a changed by bot", "cluster/b added by bot")
	})
}

func TestRewrittenBase(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		p.propose("one", set("cluster/a", "2\n"))
		since := p.BaseTip()
		p.w.git("commit", "--quiet", "--amend", "--message=rewritten")
		p.w.git("push", "--quiet", "--force", "origin", "HEAD:main")
		for _, known := range []bool{true, false} {
			if known {
				p.refresh()
			} else {
				p.load(since)
			}
			if !p.Behind() {
				t.Fatal("the branch is not behind")
			}
			p.wantProposed("cluster/a changed by bot")
		}
		p.rebase(gitrepo.Hash{})
		if p.subjects() != "one" {
			t.Errorf("commits %q", p.subjects())
		}
	})
}

func TestMissingBase(t *testing.T) {
	r := newRepository(t)
	_, err := gitrepo.Load(t.Context(), newRemote(t, r.serve(plain)), "proposed", gitrepo.Options{Base: "main"})
	var missing *gitrepo.Error
	if !errors.As(err, &missing) || missing.Kind != gitrepo.NotFound || !strings.Contains(err.Error(), "no branch main") {
		t.Errorf("error %v", err)
	}
}

func TestManyCommitsAhead(t *testing.T) {
	proposals(t, func(t *testing.T, p *proposal) {
		const count = 300
		for i := range count {
			stage(t, p.Branch, set(fmt.Sprintf("cluster/%d/%d", i%7, i), fmt.Sprint(i)))
		}
		push(t, p.Branch)
		p.w.write("docs/x", "2\n")
		p.w.push("theirs")
		p.load(gitrepo.Hash{})
		p.rebase(gitrepo.Hash{})
		if got := len(p.Proposed(gitrepo.Hash{})); got != count || len(p.Ahead()) != count {
			t.Errorf("%d files, %d commits", got, len(p.Ahead()))
		}
	})
}
