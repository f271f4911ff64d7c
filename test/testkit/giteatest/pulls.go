// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"fmt"
	"net/http"
	"testing"
)

// PullRequest is what the API returns of a pull request, as far as tests need it.
type PullRequest struct {
	Number int
	// State is open or closed.
	State       string
	Title, Body string
	Draft       bool
	Merged      bool
	Mergeable   bool
	Comments    int
	// MergedCommit is the commit on the base branch, empty unless it is merged.
	MergedCommit string `json:"merge_commit_sha"`
	User         struct{ Login string }
	Base, Head   struct{ Ref, SHA string }
	Labels       []struct{ Name string }
	Reviewers    []struct{ Login string } `json:"requested_reviewers"`
}

// PullRequests returns the pull requests in a state: open, closed or all, the newest first.
func (r *Repository) PullRequests(t testing.TB, state string) []PullRequest {
	t.Helper()
	var found []PullRequest
	r.do(t, http.MethodGet, "/pulls?sort=newest&state="+state, nil, &found)
	return found
}

// PullRequest returns a pull request.
func (r *Repository) PullRequest(t testing.TB, number int) PullRequest {
	t.Helper()
	var found PullRequest
	r.do(t, http.MethodGet, fmt.Sprintf("/pulls/%d", number), nil, &found)
	return found
}

// Propose opens a pull request of the administrator, and returns its number.
func (r *Repository) Propose(t testing.TB, head, base, title string) int {
	t.Helper()
	var created PullRequest
	r.do(t, http.MethodPost, "/pulls", object{"head": head, "base": base, "title": title}, &created)
	return created.Number
}

// Merge merges a pull request by a method: merge, squash, rebase, rebase-merge or fast-forward-only. Its branch stays.
func (r *Repository) Merge(t testing.TB, number int, method string) {
	t.Helper()
	r.do(t, http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), object{"do": method, "delete_branch_after_merge": false}, nil)
}

// Close closes a pull request without merging it. Reopen opens it again.
func (r *Repository) Close(t testing.TB, number int) {
	t.Helper()
	r.setState(t, number, "closed")
}

// Reopen opens a closed pull request.
func (r *Repository) Reopen(t testing.TB, number int) {
	t.Helper()
	r.setState(t, number, "open")
}

func (r *Repository) setState(t testing.TB, number int, state string) {
	t.Helper()
	r.do(t, http.MethodPatch, fmt.Sprintf("/pulls/%d", number), object{"state": state}, nil)
}
