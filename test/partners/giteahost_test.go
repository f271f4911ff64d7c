// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package partners

import (
	"os/exec"
	"testing"

	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/giteatest"
)

// TestGiteaPullRequests tests what other tests use of Gitea beside the mirror: users' pull requests, and how they end.
func TestGiteaPullRequests(t *testing.T) {
	t.Parallel()
	gitea := giteatest.Start(t)
	gitea.NewOrganization(t, "shop")
	repository := gitea.NewRepository(t, "shop", "clusters")
	repository.WriteFile(t, "main", "README.md", "The clusters of the shop.\n")
	for _, method := range []string{"merge", "squash", "rebase", ""} {
		branch := "branch-" + method
		repository.NewBranch(t, branch, "main")
		repository.WriteFile(t, branch, branch, "new\n")
		number := repository.Propose(t, branch, "main", "Add "+branch)
		open := repository.PullRequests(t, "open")
		if len(open) != 1 || open[0].Number != number || open[0].Head.Ref != branch || open[0].Base.Ref != "main" || open[0].State != "open" {
			t.Errorf("%s: open pull requests %+v", method, open)
		}
		if method == "" {
			repository.Close(t, number)
		} else {
			testkit.EventuallyTrue(t, "Gitea has found no conflict", func() bool { return repository.PullRequest(t, number).Mergeable })
			repository.Merge(t, number, method)
		}
		merged := method != ""
		if got := repository.PullRequest(t, number); got.State != "closed" || got.Merged != merged || (got.MergedCommit != "") != merged {
			t.Errorf("%s: pull request %+v", method, got)
		}
		repository.DeleteBranch(t, branch)
		if has := exec.CommandContext(t.Context(), "git", "-c", "safe.directory="+repository.Path(), "-C", repository.Path(),
			"cat-file", "-e", "main:"+branch).Run() == nil; has != merged {
			t.Errorf("%s: main has the change: %v, want %v", method, has, merged)
		}
	}
}
