// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// twoConfigs adds a destination that proposes a folder to the same base, with another GitRepoConfig of the same repository.
func twoConfigs(folder string) func(*fixture) {
	return func(s *fixture) {
		second := s.in.repositories[0].DeepCopy()
		second.Name = "second"
		s.in.repositories = append(s.in.repositories, second)
		onBranch("other", "main", folder)(s)
		s.in.repositories[0].Spec.AllowedBranches = second.Spec.AllowedBranches
		other := s.in.destinations[1]
		other.Spec.RepoRef.Name, other.Spec.Delivery = second.Name, s.in.destinations[0].Spec.Delivery
		other.Spec.Granularity = v1alpha1.GranularityPerChange
	}
}

// openFrom waits until one pull request from a branch is open, which is on top of main and changes only a folder.
func (p *proposing) openFrom(branch, folder string, changes int) githosttest.PullRequest {
	p.t.Helper()
	var open []githosttest.PullRequest
	testkit.Eventually(p.t, "the pull request from "+branch, func() error {
		open = nil
		for _, found := range p.api.PullRequests() {
			if found.Head == branch && found.State == githosttest.Open {
				open = append(open, found)
			}
		}
		if len(open) != 1 || !strings.Contains(open[0].Body, fmt.Sprintf("%d change", changes)) {
			return fmt.Errorf("%+v", open)
		}
		if _, err := p.run("merge-base", "--is-ancestor", "main", branch); err != nil {
			return err
		}
		changed, err := p.run("diff", "--name-only", "main", branch, "--", ".", ":!"+folder)
		if err != nil || changed != "" {
			return fmt.Errorf("changes of other folders: %s: %w", changed, err)
		}
		return nil
	})
	return open[0]
}

// TestProposalsOfTwoRepositoryConfigs has two destinations with different GitRepoConfigs propose to one branch.
func TestProposalsOfTwoRepositoryConfigs(t *testing.T) {
	const otherHead = "slipstream/shop/other"
	p := newProposing(t, githosttest.GitHub, twoConfigs("clusters/b"))
	p.cluster.put(configMap("a"), "1")
	first := p.openFrom(head, "clusters/a", 1)
	p.openFrom(otherHead, "clusters/b", 1)
	p.merge(first.Number, "--squash", "origin/"+head)
	p.state(v1alpha1.ProposalMerged)
	p.openFrom(otherHead, "clusters/b", 1)
	p.cluster.put(configMap("b"), "1")
	p.openFrom(head, "clusters/a", 1)
	second := p.openFrom(otherHead, "clusters/b", 2)
	p.api.CloseBy(second.Number, "bob")
	p.waitDeclined("other", second.Number)
	p.openFrom(head, "clusters/a", 1)
	if n := len(p.api.PullRequests()); n != 3 {
		t.Errorf("%d pull requests", n)
	}
}

func (p *proposing) waitDeclined(name string, number int64) {
	p.t.Helper()
	testkit.Eventually(p.t, "a declined pull request", func() error {
		if newest := p.record(name).Proposal; newest == nil || newest.Number != number || newest.State != v1alpha1.ProposalDeclined {
			return fmt.Errorf("status %+v", newest)
		}
		return nil
	})
}

// TestFolderOfTwoRepositoryConfigs has two destinations with different GitRepoConfigs propose the same folder of one branch.
func TestFolderOfTwoRepositoryConfigs(t *testing.T) {
	p := newProposing(t, githosttest.GitHub, twoConfigs("clusters/a"), func(s *fixture) { s.in.destinations[1].Spec.Suspend = true })
	p.cluster.put(configMap("a"), "1")
	p.openFrom(head, "clusters/a", 1)
	p.change(1, func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	p.waitReady("other", v1alpha1.ReasonFolderOverlaps)
	if n := len(p.api.PullRequests()); n != 1 {
		t.Errorf("%d pull requests", n)
	}
}

// TestSuspendedProposal suspends a destination with an open pull request, which is merged meanwhile.
func TestSuspendedProposal(t *testing.T) {
	p := newProposing(t, githosttest.GitLab)
	p.cluster.put(configMap("a"), "1")
	p.proposed(1, 1)
	p.change(0, func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	p.waitReady("main", v1alpha1.ReasonSuspended)
	p.cluster.put(configMap("b"), "1")
	p.waitPending("main", 1)
	p.merge(1, "--squash", "origin/"+head)
	p.says("Suspended, 1 change waits")
	if open := p.record("main").Proposal; open == nil || open.State != v1alpha1.ProposalOpen {
		t.Errorf("proposal %+v", open)
	}
	p.change(0, func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	p.proposed(2, 1)
	p.waitReady("main", v1alpha1.ReasonSucceeded)
}

// change changes a destination as a user does.
func (p *proposing) change(at int, change func(*v1alpha1.GitDestination)) {
	p.t.Helper()
	d := p.in.destinations[at].DeepCopy()
	d.Generation++
	change(d)
	p.in.destinations[at] = d
	p.plan()
}

// TestProposalWithoutPruning proposes to keep the files without an object: one that others have added to the base, and that of an object
// which is deleted while its pull request is open.
func TestProposalWithoutPruning(t *testing.T) {
	p := newProposing(t, githosttest.Gitea, func(s *fixture) { s.in.destinations[0].Spec.Prune = v1alpha1.PruneNever })
	other := p.otherWriter()
	if err := other.edit("theirs", other.write("clusters/a/core/v1/configmaps/shop/z.yaml", "foreign")); err != nil {
		t.Fatal(err)
	}
	held := func(want int64) {
		t.Helper()
		testkit.Eventually(t, "files are counted", func() error {
			if got := p.record("main").OrphansHeld; got != want {
				return fmt.Errorf("%d files", got)
			}
			return nil
		})
	}
	p.cluster.put(configMap("a"), "1")
	p.cluster.put(configMap("b"), "1")
	first := p.openFrom(head, "clusters/a", 2)
	held(1)
	p.cluster.remove(configMap("a"))
	held(2)
	p.idle()
	if still := p.openFrom(head, "clusters/a", 2); strings.Contains(still.Body, "removed") {
		t.Errorf("body: %s", still.Body)
	}
	p.merge(first.Number, "--squash", "origin/"+head)
	p.state(v1alpha1.ProposalMerged)
	p.idle()
	held(2)
	p.change(0, func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneAlways })
	if pruned := p.openFrom(head, "clusters/a", 2); strings.Count(pruned.Body, "| removed |") != 2 {
		t.Errorf("body: %s", pruned.Body)
	}
}
