// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"time"
)

// Kind is the API of a Git host.
type Kind string

// The kinds of hosts. GitHub includes GitHub Enterprise, and Gitea includes Forgejo.
const (
	GitHub      Kind = "GitHub"
	GitLab      Kind = "GitLab"
	Gitea       Kind = "Gitea"
	AzureDevOps Kind = "AzureDevOps"
)

// Host has the pull requests of one repository. Errors of its methods are of type *Error, except those of Options.Token, which are wrapped.
type Host interface {
	// Address identifies the repository at its host: the kind, and where the API has it.
	Address() string
	// Open returns the open pull request from head to base, nil if there is none.
	Open(ctx context.Context, head, base string) (*PullRequest, error)
	// Newest returns the newest pull request from head to base, in any state, that was created at or after since, nil if there is none.
	// Hosts store full seconds, so since is rounded down to one.
	Newest(ctx context.Context, head, base string, since time.Time) (*PullRequest, error)
	// Get returns the pull request with a number. The error is NotFound if it was deleted.
	Get(ctx context.Context, number int64) (*PullRequest, error)
	// Create opens a pull request from head to base. If one is open already, it returns that one as it is. If a label or a reviewer is
	// refused, it returns the pull request and the error.
	Create(ctx context.Context, head, base string, content Content) (*PullRequest, error)
	// Update writes what differs between current, which Open, Newest, Get or Create returned, and content, and returns the result. Labels
	// and reviewers are added, never removed. If one of them is refused, or the change of draft, it returns the pull request and the
	// error. GitHub may refuse the latter to the tokens of Apps.
	Update(ctx context.Context, current *PullRequest, content Content) (*PullRequest, error)
	// Comment posts a comment, unless a comment with the same marker exists. The marker consists of letters, digits and ._:/=- and is
	// written as an HTML comment, which readers do not see, to the end of the comment.
	Comment(ctx context.Context, number int64, marker, text string) error
	// Close closes a pull request without merging it and returns it. If it was closed or merged already, its State is what happened.
	Close(ctx context.Context, number int64) (*PullRequest, error)
}

// State is the state of a pull request.
type State string

// The states of pull requests. Closed is closed without a merge.
const (
	Open   State = "Open"
	Merged State = "Merged"
	Closed State = "Closed"
)

// PullRequest is a pull request as its host has it.
type PullRequest struct {
	// Number identifies it in its repository.
	Number int64
	// URL is its page, empty if the host gives none that begins with http:// or https://.
	URL string
	// Title does not have the prefix with which GitLab and Gitea mark drafts.
	Title string
	Body  string
	// Head and Base are branches, and HeadSHA is the commit of Head. After the end it is the last commit that the pull request had; empty
	// if the host does not say.
	Head, HeadSHA, Base string
	State               State
	Draft               bool
	Created             time.Time
	// Ended is when it was merged or closed, zero while it is open.
	Ended time.Time
	// EndedBy is the login of who merged or closed it, empty if the host does not say. It is printable.
	EndedBy string
	Labels  []string
	// Reviewers are as in Content. Those who have reviewed already may be missing.
	Reviewers []string
	// MergeCommit is the commit of the merge, empty if it is not merged or the host does not say.
	MergeCommit string

	// node is GitHub's identifier for GraphQL.
	node string
}

// Content is what a pull request shall contain.
type Content struct {
	// Title is one line. It is truncated to what the host stores.
	Title string
	// Body is Markdown. If it is longer than the host stores, it is cut at the end of a line, and a last line says so.
	Body string
	// Labels are created if the repository does not have them.
	Labels []string
	// Reviewers are logins. At GitHub, Gitea and Forgejo, organization/team is a team. At Azure DevOps, they are the identifiers (GUID) of
	// users or groups, because its API resolves no names.
	Reviewers []string
	Draft     bool
}
