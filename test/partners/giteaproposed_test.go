// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

func TestGiteaProposals(t *testing.T) {
	t.Parallel()
	s := newProposalCluster(t)
	t.Run("Together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *giteaCluster){
			"Burst":         proposedBurst,
			"Merge":         func(t *testing.T, s *giteaCluster) { mergedProposal(t, s, "merge") },
			"Squash":        func(t *testing.T, s *giteaCluster) { mergedProposal(t, s, "squash") },
			"Rebase":        func(t *testing.T, s *giteaCluster) { mergedProposal(t, s, "rebase") },
			"BaseMoved":     movedBase,
			"BaseRewritten": rewrittenBase,
			"BranchDeleted": deletedProposalBranch,
			"Scopes":        proposalScopesOfToken,
			"Switched":      switchedDelivery,
			"Equal":         equalProposal,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
	t.Run("Declined", func(t *testing.T) { declinedProposal(t, s) })
	t.Run("Stopped", func(t *testing.T) { stoppedGiteaOfProposals(t, s) })
	t.Run("Killed", func(t *testing.T) { killedWhileProposing(t, s) })
}

// proposedBurst makes 1000 changes by several users while a pull request is open.
func proposedBurst(t *testing.T, s *giteaCluster) {
	const writers, each = 5, 200
	s.gitea.NewUser(t, "stranger")
	p := s.newProposals(t, "burst", `title: Changes of the shop, body: "Please **review**.", labels: [mirror], reviewers: [stranger], draft: true`)
	p.repository.AddCollaborator(t, s.gitea.NewUser(t, "reviewer-of-burst"), "read")
	p.put(t, s.as(t, "alice"), "a", "1")
	// A user without the right to read the repository cannot review.
	if message := p.Condition(t, p.Namespace, "gitdestination/main", "Ready", "ProposalRefused"); !strings.Contains(message, "reviewer stranger: ") {
		t.Errorf("message %q", message)
	}
	p.Patch(t, p.Namespace, "gitdestination/main", `{"spec": {"delivery": {"pullRequest": {"reviewers": ["reviewer-of-burst"]}}}}`)
	first := p.proposed(t, 1, 1, "Please **review**.\n", "| added | `v1/configmaps burst/a` | `alice` |")
	if !strings.HasSuffix(first.Title, "Changes of the shop") || !first.Draft || len(first.Labels) != 1 || first.Labels[0].Name != "mirror" ||
		len(first.Reviewers) != 1 || first.User.Login != p.bot.Name {
		t.Errorf("pull request %+v", first)
	}
	var wait sync.WaitGroup
	for i := range writers {
		by := s.as(t, fmt.Sprintf("user-%d", i))
		wait.Go(func() {
			for n := range each {
				p.put(t, by, fmt.Sprintf("c-%d-%03d", i, n/2), fmt.Sprint(n))
			}
		})
	}
	wait.Wait()
	const objects = writers*each/2 + 1
	// The table has the first rows, by the paths of the files.
	last := p.proposed(t, 1, objects, "`v1/configmaps burst/a`", "`v1/configmaps burst/c-0-000` | `user-0`", "user-4` 100", "`user-0` 100")
	if rows := strings.Count(last.Body, "\n| added | "); rows != 200 {
		t.Errorf("%d rows", rows)
	}
	authors := p.authors(t)
	slices.Sort(authors)
	if got := slices.Compact(authors); !slices.Equal(got, []string{"alice", "user-0", "user-1", "user-2", "user-3", "user-4"}) {
		t.Errorf("authors %q", got)
	}
	p.Intact(t)
}

// mergedProposal merges pull requests with a method, with changes between.
func mergedProposal(t *testing.T, s *giteaCluster, method string) {
	p := s.newProposals(t, method, "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.put(t, s.as(t, "bob"), "b", "1")
	p.proposed(t, 1, 2)
	p.merge(t, 1, method)
	p.put(t, s.as(t, "carol"), "c", "1") // Perhaps before the server knows of the merge.
	p.proposed(t, 2, 1, "| added | `v1/configmaps "+method+"/c` | `carol` |")
	if got := p.authors(t); !slices.Equal(got, []string{"carol"}) {
		t.Errorf("authors of what is proposed after the merge: %q", got)
	}
	p.merge(t, 2, method)
	p.repository.DeleteBranch(t, p.Branch)
	p.ends(t, 2, "Merged")
	p.HasField(t, p.Namespace, "gds/main", "{.status.proposal.endedBy}", p.gitea.Admin.Name)
	p.HasField(t, p.Namespace, "gds/main", "{.status.state}", "Up to date")
	p.put(t, s.as(t, "bob"), "b", "2")
	p.Delete(t, p.Namespace, "configmap/a")
	p.proposed(t, 3, 2, "| removed | `v1/configmaps "+method+"/a`", "| changed | `v1/configmaps "+method+"/b` | `bob` |")
	p.Intact(t)
}

// movedBase has others change the base while a pull request is open.
func movedBase(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "moved", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.put(t, s.as(t, "bob"), "b", "1")
	p.proposed(t, 1, 2)
	o := p.others(t)
	o.commit(t, "docs/theirs", "new")
	o.git(t, "push", "--quiet", "origin", "main")
	p.rebased(t, "main", "docs/theirs")
	p.proposed(t, 1, 2, "/a` | `alice` |", "/b` | `bob` |")
	if got := p.authors(t); !slices.Equal(got, []string{"alice", "bob"}) && !slices.Equal(got, []string{"bob", "alice"}) {
		t.Errorf("authors after the rebase: %q", got)
	}
}

// rebased waits until the branch has a file of a branch.
func (p *proposals) rebased(t *testing.T, from, path string) {
	t.Helper()
	mirrortest.Eventually(t, "the branch has "+path, func(ctx context.Context) error {
		_, err := p.Git(ctx, "cat-file", "-e", p.Branch+":"+path)
		if err != nil {
			return fmt.Errorf("not yet rebased on %s: %w; %s", from, err, p.said(ctx))
		}
		return nil
	})
}

// rewrittenBase has others replace the base by another history.
func rewrittenBase(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "rewritten", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.proposed(t, 1, 1)
	p.merge(t, 1, "merge")
	p.put(t, s.as(t, "bob"), "b", "1")
	p.proposed(t, 2, 1)
	o := p.others(t)
	o.git(t, "checkout", "--quiet", "--orphan", "new")
	o.git(t, "rm", "-r", "--quiet", "--force", ".")
	o.commit(t, "new", "history")
	o.git(t, "push", "--quiet", "--force", "origin", "new:main")
	p.rebased(t, "main", "new")
	// What was merged is missing in the base again.
	p.Equal(t, p.client)
	p.open(t, 2, "2 changes of", "/a`", "/b` | `bob` |")
}

// deletedProposalBranch deletes the branch while its pull request is open. Gitea closes it then.
func deletedProposalBranch(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "branchless", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.proposed(t, 1, 1)
	p.repository.DeleteBranch(t, p.Branch)
	p.ends(t, 1, "Declined")
	p.Condition(t, p.Namespace, "gitdestination/main", "ProposalDeclined", "ClosedWithoutMerge")
	p.put(t, s.as(t, "bob"), "b", "1")
	p.open(t, 2, "1 change of", "/b` | `bob` |")
	p.put(t, s.as(t, "bob"), "a", "2")
	p.proposed(t, 2, 2)
}

// proposalScopesOfToken tests tokens whose scopes do not permit everything.
func proposalScopesOfToken(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "scopes", "labels: [mirror]")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.proposed(t, 1, 1)
	p.merge(t, 1, "merge")
	p.token(t, "second", "write:repository")
	p.bot.RevokeToken(t, "first")
	p.put(t, s.as(t, "bob"), "b", "1")
	if message := p.Condition(t, p.Namespace, "gitdestination/main", "Ready", "ProposalRefused"); !strings.Contains(message, "write:issue") {
		t.Errorf("message %q", message)
	}
	p.Equal(t, p.client) // The branch is written.
	p.token(t, "third", proposalScopes...)
	found := p.proposed(t, 2, 1)
	if len(found.Labels) != 1 {
		t.Errorf("pull request %+v", found)
	}
}

// switchedDelivery changes the delivery while changes come.
func switchedDelivery(t *testing.T, s *giteaCluster) {
	p := s.newRepository(t, "switched", "secrets: Omit")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.Equal(t, p.client)
	p.Patch(t, p.Namespace, "gitdestination/main", `{"spec": {"delivery": {"type": "PullRequest", "pullRequest": {"branchPrefix": "slipstream/"}}}}`)
	p.Branch = "slipstream/switched/main"
	p.put(t, s.as(t, "bob"), "b", "1")
	p.proposed(t, 1, 1, "/b` | `bob` |")
	p.Patch(t, p.Namespace, "gitdestination/main", `{"spec": {"delivery": null}}`)
	p.Branch = "main"
	p.put(t, s.as(t, "carol"), "c", "1")
	p.Equal(t, p.client)
	p.Settled(t)
	p.Ready(t, p.Namespace, "gitdestination/main")
	if state := p.Field(t, p.Namespace, "gds/main", "{.status.proposal}"); state != "" {
		t.Errorf("status.proposal after the switch: %s", state)
	}
	p.Patch(t, p.Namespace, "gitdestination/main", `{"spec": {"delivery": {"type": "PullRequest", "pullRequest": {"branchPrefix": "slipstream/"}}}}`)
	p.Branch = "slipstream/switched/main"
	p.put(t, s.as(t, "bob"), "d", "1")
	p.proposed(t, 1, 1, "/d` | `bob` |")
}

// equalProposal takes the proposed changes back.
func equalProposal(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "equal", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.proposed(t, 1, 1)
	p.merge(t, 1, "merge")
	p.put(t, s.as(t, "bob"), "a", "2")
	p.proposed(t, 2, 1)
	p.put(t, s.as(t, "bob"), "a", "1")
	p.ends(t, 2, "Equal")
	if got := p.repository.PullRequest(t, 2); got.State != "closed" || got.Merged || got.Comments != 1 {
		t.Errorf("pull request %+v", got)
	}
	p.HasField(t, p.Namespace, "gds/main", "{.status.state}", "Up to date")
	p.put(t, s.as(t, "bob"), "a", "3")
	p.proposed(t, 3, 1, "| changed |")
}

// declinedProposal closes a pull request, and restarts the server.
func declinedProposal(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "declined", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.put(t, s.as(t, "bob"), "b", "1")
	p.proposed(t, 1, 2)
	p.repository.Close(t, 1)
	declined := func() {
		t.Helper()
		message := p.Condition(t, p.Namespace, "gitdestination/main", "ProposalDeclined", "ClosedWithoutMerge")
		for _, text := range []string{"Pull request #1 was closed without a merge by " + p.gitea.Admin.Name + " at 20", "2 files are not proposed again"} {
			if !strings.Contains(message, text) {
				t.Errorf("message %q lacks %q", message, text)
			}
		}
		p.HasField(t, p.Namespace, "gds/main", "{.status.state}", "2 changes declined in #1")
	}
	declined()
	const lastSeed = "{.status.lastSeedTime}"
	before := p.Field(t, p.Namespace, "gds/main", lastSeed)
	p.restart(t, syscall.SIGTERM)
	// Otherwise the comparison may find the changes below, and it knows no authors.
	mirrortest.Eventually(t, "the new server has compared the cluster", func(ctx context.Context) error {
		at, err := p.Try.Field(ctx, p.Namespace, "gds/main", lastSeed)
		if err == nil && at == before {
			err = fmt.Errorf("the last comparison was at %s", at)
		}
		return err
	})
	declined()
	if open := p.openOnes(t); len(open) > 0 {
		t.Fatalf("open pull requests %+v", open)
	}
	p.put(t, s.as(t, "carol"), "c", "1")
	found := p.open(t, 2, "1 change of", "/c` | `carol` |")
	if strings.Contains(found.Body, "declined/a`") {
		t.Errorf("what was declined is proposed again: %s", found.Body)
	}
	p.put(t, s.as(t, "alice"), "a", "2")
	p.open(t, 2, "2 changes of", "/a` | `alice` |", "/c`")
	p.sync(t)
	p.proposed(t, 2, 3, "/b`")
	p.Condition(t, p.Namespace, "gitdestination/main", "ProposalDeclined", "NothingDeclined")
}

// sync requests a comparison, as kubectl slipstream sync does.
func (p *proposals) sync(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "a comparison is requested", func(ctx context.Context) error {
		_, err := p.Try.Post(ctx, "/apis/configbutler.ai/v1alpha1/namespaces/"+p.Namespace+"/gitdestinations/main/sync", "{}")
		return err
	})
}

// restart stops the server with a signal and starts it with the same data.
func (p *proposals) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := p.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stoppedGiteaOfProposals stops Gitea while changes come.
func stoppedGiteaOfProposals(t *testing.T, s *giteaCluster) {
	p := s.newProposals(t, "halted", "")
	p.put(t, s.as(t, "alice"), "a", "1")
	p.proposed(t, 1, 1)
	s.gitea.Stop(t)
	p.put(t, s.as(t, "bob"), "b", "1")
	p.Condition(t, p.Namespace, "gitdestination/main", "Ready", "RepositoryUnreachable")
	s.gitea.StartAgain(t)
	p.proposed(t, 1, 2, "/b` | `bob` |")
}

// killedWhileProposing kills the server at random while changes come and pull requests end.
func killedWhileProposing(t *testing.T, s *giteaCluster) {
	const kills, writes = 4, 40
	p := s.newProposals(t, "killed", "")
	p.put(t, s.as(t, "alice"), "c00", "first")
	p.proposed(t, 1, 1)
	users := []kubernetes.Interface{s.as(t, "alice"), s.as(t, "bob"), s.as(t, "carol")}
	for round := range kills {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range writes {
				p.put(t, users[i%len(users)], fmt.Sprintf("c%02d", i), fmt.Sprint(round))
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Duration(rand.IntN(4000)) * time.Millisecond):
		}
		p.restart(t, syscall.SIGKILL)
		<-done
		p.Equal(t, p.client)
		open := p.openOnes(t)
		if len(open) == 1 && round%2 == 1 {
			p.proposed(t, open[0].Number, writes)
			p.merge(t, open[0].Number, "squash")
		}
	}
	p.Equal(t, p.client)
	p.Intact(t)
	p.openOnes(t)
}
