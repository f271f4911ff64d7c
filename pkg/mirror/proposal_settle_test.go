// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// TestRebaseSignsOnlyOwnCommits has others push to the branch before its base moves, and another process rebase it.
func TestRebaseSignsOnlyOwnCommits(t *testing.T) {
	key, public := newSSHKey(t, "")
	p := newProposing(t, githosttest.GitHub, signing(v1alpha1.SigningFormatSSH, map[string][]byte{"ssh-privatekey": key}))
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.idle()
	p.stop()
	other := p.otherWriter()
	theirs := "X-ConfigButler-ClusterUID: cluster" // As the server writes it.
	for _, path := range []string{"clusters/a/core/v1/configmaps/shop/a.yaml", "clusters/a/core/v1/configmaps/shop/z.yaml"} {
		for _, step := range []func() error{
			func() error { return other.git("fetch", "--quiet") },
			func() error { return other.git("reset", "--quiet", "--hard", "origin/"+head) },
			other.write(path, "forged"),
			func() error { return other.git("add", "--all") },
			func() error { return other.git("commit", "--quiet", "--message=forged", "--message="+theirs) },
			func() error { return other.git("push", "--quiet", "origin", "HEAD:"+head) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.start() // The files are set back on top of what others have pushed.
	p.cluster.put(configMap("b"), "1")
	p.proposed(1, 2)
	p.idle()
	if subjects := p.mustRun("log", "--format=%s", "main.."+head); strings.Count(subjects, "forged") != 2 {
		t.Errorf("the commits of others were replaced before the base moved: %s", subjects)
	}
	p.stop()
	if err := other.edit("theirs", other.write("docs", "new")); err != nil {
		t.Fatal(err)
	}
	p.start()
	p.proposed(1, 2)
	signers := filepath.Join(t.TempDir(), "signers")
	if err := os.WriteFile(signers, []byte("bot@example.com "+public), 0o600); err != nil {
		t.Fatal(err)
	}
	log := p.mustRun("-c", "gpg.ssh.allowedSignersFile="+signers, "log", "--format=%G? %s", "main.."+head)
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "G ") || strings.Contains(line, "forged") {
			t.Errorf("commit: %s", line)
		}
	}
	for _, kept := range []string{"[CREATE] v1/configmaps shop/a", "[CREATE] v1/configmaps shop/b"} {
		if !strings.Contains(log, kept) {
			t.Errorf("%s is not among the commits:\n%s", kept, log)
		}
	}
}

// TestEndOfProposalWithoutCommit has a host that does not name the commit of a pull request that was closed, and whose clock differs. Its
// changes are withheld, and those after it are proposed.
func TestEndOfProposalWithoutCommit(t *testing.T) {
	for name, skew := range map[string]time.Duration{"clock ahead": time.Hour, "clock behind": -time.Hour} {
		for _, rebased := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, rebased %v", name, rebased), func(t *testing.T) {
				p := newProposing(t, githosttest.GitHub, func(s *fixture) { s.pollInterval = time.Hour })
				p.cluster.put(configMap("a"), "1")
				p.proposed(1, 1)
				p.idle()
				p.api.CloseBy(1, "alice")
				p.api.Edit(1, func(closed *githosttest.PullRequest) {
					closed.Ended = closed.Ended.Add(skew)
					if !rebased {
						closed.HeadSHA = ""
					}
				})
				p.api.Down()
				p.cluster.put(configMap("b"), "1")
				p.holds(head, "clusters/a", inShop)
				p.stop()
				if rebased {
					other := p.otherWriter()
					if err := other.edit("theirs", other.write("docs", "new")); err != nil {
						t.Fatal(err)
					}
				}
				p.start()
				testkit.Eventually(t, "the branch on top of its base", func() error {
					_, err := p.run("merge-base", "--is-ancestor", "main", head)
					return err
				})
				p.api.Up()
				p.stop()
				p.start()
				testkit.EventuallyTrue(t, "the second pull request", func() bool { return len(p.api.PullRequests()) == 2 })
				if body := p.api.PullRequests()[1].Body; !strings.Contains(body, "1 change of") || !strings.Contains(body, "shop/b`") {
					t.Errorf("body: %s", body)
				}
				p.says("1 change proposed in #2")
				if declined := p.condition(v1alpha1.ConditionProposalDeclined); !strings.Contains(declined.Message, "1 file is not proposed") {
					t.Errorf("condition %+v", declined)
				}
			})
		}
	}
}

// TestBaseOfProposalGetsAnotherOwner has another owner mark the folder in the base: with exclusiveMode nothing is pushed, not even a rebase.
func TestBaseOfProposalGetsAnotherOwner(t *testing.T) {
	p := newProposing(t, githosttest.GitHub, func(s *fixture) { exclusive(s.in.destinations[0]) })
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	tip := p.mustRun("rev-parse", head)
	other := p.otherWriter()
	if err := other.edit("theirs", other.write(markerFile, foreignMarker)); err != nil {
		t.Fatal(err)
	}
	p.waitReady("main", v1alpha1.ReasonOwnedByAnother)
	p.waitConflict("main", metav1.ConditionTrue, "of the cluster elsewhere")
	p.cluster.put(configMap("b"), "1")
	p.stop()
	p.start()
	p.waitReady("main", v1alpha1.ReasonOwnedByAnother)
	if now := p.mustRun("rev-parse", head); now != tip {
		t.Errorf("the branch was pushed: %s", p.mustRun("log", "--format=%s", "main.."+head))
	}
	if err := other.edit("hand over", func() error { return other.git("rm", "--quiet", markerFile) }); err != nil {
		t.Fatal(err)
	}
	p.proposed(1, 2)
	p.waitConflict("main", metav1.ConditionFalse, "")
}

// TestPlaceOfOpenProposalChanges changes what the destination proposes, and where, while its pull request is open: that one is closed.
func TestPlaceOfOpenProposalChanges(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.GitDestination){
		"folder": func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/b" },
		"prefix": func(d *v1alpha1.GitDestination) { d.Spec.Delivery.PullRequest.BranchPrefix = "other/" },
		"base":   func(d *v1alpha1.GitDestination) { d.Spec.Branch = "stable" },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t, githosttest.Gitea, func(s *fixture) {
				s.in.repositories[0].Spec.AllowedBranches = []string{"*/*/*"}
				s.mustRun("branch", "stable", "main")
			})
			p.cluster.put(configMap("a"), "1")
			p.proposed(1, 1)
			p.api.Down() // It is closed as soon as the host responds again.
			d := p.moves(change)
			written, base := d.Branches()
			p.holds(written, d.Spec.BaseFolder, inShop)
			p.waitReady("main", v1alpha1.ReasonProposalFailed)
			p.stop()
			p.start()
			p.api.Up()
			testkit.Eventually(t, "the second pull request", func() error {
				all := p.api.PullRequests()
				if len(all) != 2 || all[1].State != githosttest.Open || all[1].Head != written || all[1].Base != base {
					return fmt.Errorf("%+v", all)
				}
				return nil
			})
			first := p.api.PullRequests()[0]
			if first.State != githosttest.Closed || len(first.Comments) != 1 || !strings.Contains(first.Comments[0], "another branch, base or folder") {
				t.Errorf("pull request %+v", first)
			}
			p.says("1 change proposed in #2")
			if files := p.mustRun("diff", "--name-only", base, written); strings.Contains(files, "clusters/a") != (name != "folder") {
				t.Errorf("the branch changes %s", files)
			}
		})
	}
}

// TestPlaceChangesWhileTheHostFails has each of the requests fail with which the pull request of another folder is closed and the next one
// is opened. The branch is the same, and the first one is not taken for the next.
func TestPlaceChangesWhileTheHostFails(t *testing.T) {
	for nth := range 12 {
		t.Run(fmt.Sprint("request ", nth+1), func(t *testing.T) {
			p := newProposing(t, githosttest.GitHub)
			p.cluster.put(configMap("a"), "1")
			p.proposed(1, 1)
			p.api.Down()
			p.moves(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/b" })
			p.waitReady("main", v1alpha1.ReasonProposalFailed)
			p.api.FailAt(nth+1, githosttest.Before, githosttest.Respond(500, "{}"))
			p.api.Up()
			testkit.EventuallyTrue(t, "the second pull request", func() bool { return len(p.api.PullRequests()) == 2 })
			p.says("1 change proposed in #2")
			if declined := p.condition(v1alpha1.ConditionProposalDeclined); declined.Status == metav1.ConditionTrue {
				t.Errorf("condition %+v", declined)
			}
			if all := p.api.PullRequests(); len(all) != 2 || all[0].State != githosttest.Closed || all[1].State != githosttest.Open {
				t.Errorf("pull requests %+v", all)
			}
		})
	}
}

// TestOwnCommits checks which hashes of own commits are kept.
func TestOwnCommits(t *testing.T) {
	hash := func(n int) gitrepo.Hash { return gitrepo.ParseHash(fmt.Sprintf("%040x", n+1)) }
	hashes := func(from, to int) (out []gitrepo.Hash) {
		for n := from; n < to; n++ {
			out = append(out, hash(n))
		}
		return out
	}
	ahead := []gitrepo.AheadCommit{{Hash: hash(0)}}
	for name, test := range map[string]struct {
		own    []gitrepo.Hash
		ahead  []gitrepo.AheadCommit
		staged []gitrepo.Hash
		want   []gitrepo.Hash
	}{
		"few":                 {hashes(0, 5), nil, hashes(5, 6), hashes(0, 6)},
		"of the branch":       {hashes(0, 500), ahead, hashes(500, 501), append(hashes(0, 1), hashes(399, 501)...)},
		"refused pushes only": {hashes(0, 500), nil, hashes(500, 600), append(hashes(300, 500), hashes(500, 600)...)},
		"too many":            {nil, nil, hashes(0, maxStoredOwn+5), hashes(5, maxStoredOwn+5)},
	} {
		if got := ownCommits(test.own, test.ahead, test.staged); !slices.Equal(got, proposal.Hashes(test.want)) {
			t.Errorf("%s: %d hashes, want %d", name, len(got), len(test.want))
		}
	}
}

// TestDeclinedProposalIsReopened has a user open a declined pull request again: the next change continues it.
func TestDeclinedProposalIsReopened(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.api.CloseBy(1, "alice")
	p.state(v1alpha1.ProposalDeclined)
	p.api.Edit(1, func(reopened *githosttest.PullRequest) {
		reopened.State, reopened.Ended, reopened.EndedBy = githosttest.Open, time.Time{}, ""
	})
	p.cluster.put(configMap("b"), "1")
	p.says("1 change proposed in #1")
	p.ask("now", false)
	p.proposed(1, 2)
	if all := p.api.PullRequests(); len(all) != 1 || all[0].State != githosttest.Open {
		t.Errorf("pull requests %+v", all)
	}
}

// TestHostOfProposalChanges configures another host while a pull request is open. It is not declined: the changes are proposed at the other
// one, whose pull requests with the same number do not matter.
func TestHostOfProposalChanges(t *testing.T) {
	for name, others := range map[string]int{"without pull requests": 0, "with one": 1} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t, githosttest.GitHub)
			p.cluster.put(configMap("a"), "1")
			p.proposed(1, 1)
			p.stop()
			earlier := p.api
			p.api = githosttest.New(t, githosttest.Gitea, githosttest.WithBranches(func(branch string) (string, bool) {
				sha, err := p.run("rev-parse", "--verify", "refs/heads/"+branch)
				return sha, err == nil
			}))
			for range others {
				number := p.api.Add(githosttest.PullRequest{Title: "theirs", Head: "feature", Base: "main"})
				p.api.CloseBy(number, "alice")
			}
			p.start()
			p.proposed(int64(others)+1, 1)
			p.says(fmt.Sprintf("1 change proposed in #%d", others+1))
			if declined := p.condition(v1alpha1.ConditionProposalDeclined); declined.Status == metav1.ConditionTrue {
				t.Errorf("condition %+v", declined)
			}
			if first := earlier.PullRequests()[0]; first.State != githosttest.Open {
				t.Errorf("pull request %+v", first)
			}
		})
	}
}

// TestProposalStaysOpenUntilItIsCompared replaces the commits of the branch and moves its base, so that a rebase leaves out all of them. The
// pull request is not closed before the comparison, which makes the changes again.
func TestProposalStaysOpenUntilItIsCompared(t *testing.T) {
	p := newProposing(t, githosttest.GitHub)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.idle()
	p.stop()
	other := p.otherWriter()
	for _, step := range [][]string{
		{"fetch", "--quiet"}, {"reset", "--quiet", "--hard", "origin/" + head}, {"commit", "--quiet", "--amend", "--message=theirs"},
		{"push", "--quiet", "--force", "origin", "HEAD:" + head},
	} {
		if err := other.git(step...); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.edit("theirs", other.write("docs", "new")); err != nil {
		t.Fatal(err)
	}
	p.cluster.setRefused(configMaps, errors.New("no lists"))
	before := p.cluster.listed()
	p.start()
	testkit.EventuallyTrue(t, "lists", func() bool { return p.cluster.listed() > before+1 })
	if first := p.api.PullRequests()[0]; first.State != githosttest.Open || len(first.Comments) > 0 {
		t.Errorf("pull request %+v", first)
	}
	p.cluster.setRefused(configMaps, nil)
	p.proposed(1, 1)
	if subjects := p.mustRun("log", "--format=%s", "main.."+head); strings.Contains(subjects, "theirs") {
		t.Errorf("commits %s", subjects)
	}
}
