// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// github is the REST API of GitHub and GitHub Enterprise, and the GraphQL API for what REST does not have.
type github struct {
	*client
	owner, name string
}

var _ api = (*github)(nil)

func (*github) limits() limits {
	return limits{host: "GitHub", title: 256, body: 65536, comment: 65536}
}

// complete implements api: lists do not say who merged or closed.
func (*github) complete(listed *PullRequest) bool { return listed.State == Open }

// path returns a path below the repository.
func (g *github) path(segments ...string) []string {
	return append([]string{"repos", g.owner, g.name}, segments...)
}

func decimal(number int64) string { return strconv.FormatInt(number, 10) }

type githubUser struct {
	Login string `json:"login"`
}

type githubBranch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

type githubPullRequest struct {
	Number             int64                   `json:"number"`
	NodeID             string                  `json:"node_id"`
	HTMLURL            string                  `json:"html_url"`
	State              string                  `json:"state"`
	Title              string                  `json:"title"`
	Body               string                  `json:"body"`
	Draft              bool                    `json:"draft"`
	CreatedAt          time.Time               `json:"created_at"`
	ClosedAt           time.Time               `json:"closed_at"`
	MergedAt           time.Time               `json:"merged_at"`
	MergedBy           githubUser              `json:"merged_by"`
	MergeCommitSHA     string                  `json:"merge_commit_sha"`
	Head               githubBranch            `json:"head"`
	Base               githubBranch            `json:"base"`
	Labels             []struct{ Name string } `json:"labels"`
	RequestedReviewers []githubUser            `json:"requested_reviewers"`
	RequestedTeams     []struct{ Slug string } `json:"requested_teams"`
}

// isOwn reports whether the head is in the repository itself. The repository of a deleted fork is null.
func (p *githubPullRequest) isOwn() bool {
	return p.Head.Repo != nil && p.Base.Repo != nil && p.Head.Repo.ID == p.Base.Repo.ID
}

func (g *github) convert(p *githubPullRequest) *PullRequest {
	converted := &PullRequest{
		Number: p.Number, URL: pageURL(p.HTMLURL), Title: p.Title, Body: p.Body, Head: p.Head.Ref, HeadSHA: p.Head.SHA, Base: p.Base.Ref,
		State: Open, Draft: p.Draft, Created: p.CreatedAt, node: p.NodeID,
	}
	for _, label := range p.Labels {
		converted.Labels = append(converted.Labels, label.Name)
	}
	for _, reviewer := range p.RequestedReviewers {
		converted.Reviewers = append(converted.Reviewers, reviewer.Login)
	}
	for _, team := range p.RequestedTeams {
		converted.Reviewers = append(converted.Reviewers, g.owner+"/"+team.Slug)
	}
	switch {
	case !p.MergedAt.IsZero():
		converted.State, converted.Ended, converted.EndedBy = Merged, p.MergedAt, person(p.MergedBy.Login)
		converted.MergeCommit = p.MergeCommitSHA
	case p.State != "open":
		converted.State, converted.Ended = Closed, p.ClosedAt
	}
	return converted
}

func (g *github) list(ctx context.Context, op string, filter filter, page page) ([]*PullRequest, bool, error) {
	query := url.Values{
		"state": {"all"}, "head": {g.owner + ":" + filter.head}, "base": {filter.base}, "sort": {"created"}, "direction": {"desc"},
	}
	if filter.open {
		query.Set("state", "open")
	}
	var received list[githubPullRequest]
	header, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("pulls"), query: page.in(query, "page", "per_page"), out: &received,
	})
	if err != nil {
		return nil, false, err
	}
	var found []*PullRequest
	for i := range received {
		if received[i].isOwn() {
			found = append(found, g.convert(&received[i]))
		}
	}
	return found, hasMore(header, len(received), page), nil
}

func (g *github) get(ctx context.Context, op string, number int64) (*PullRequest, error) {
	var received githubPullRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("pulls", decimal(number)), out: &received, about: "the pull request",
	})
	if err != nil {
		return nil, err
	}
	found := g.convert(&received)
	if found.State != Closed {
		return found, nil
	}
	found.EndedBy, err = g.closer(ctx, op, number)
	return withoutCloser(found, err)
}

// withoutCloser returns a closed pull request even if the token may not see who closed it.
func withoutCloser(closed *PullRequest, err error) (*PullRequest, error) {
	if failed, ok := errors.AsType[*Error](err); ok && (failed.Kind == Unauthorized || failed.Kind == NotFound) {
		return closed, nil
	}
	if err != nil {
		return nil, err
	}
	return closed, nil
}

// closer returns who closed a pull request without merging it. Only the issue, which each pull request has, says so.
func (g *github) closer(ctx context.Context, op string, number int64) (string, error) {
	var issue struct {
		ClosedBy githubUser `json:"closed_by"`
	}
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("issues", decimal(number)), out: &issue, about: "the pull request",
	})
	return person(issue.ClosedBy.Login), err
}

func (g *github) create(ctx context.Context, op, head, base string, content Content) (*PullRequest, error) {
	var received githubPullRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("pulls"), out: &received,
		in: struct {
			Title string `json:"title"`
			Head  string `json:"head"`
			Base  string `json:"base"`
			Body  string `json:"body"`
			Draft bool   `json:"draft"`
		}{content.Title, head, base, content.Body, content.Draft},
	})
	if err != nil {
		return nil, err
	}
	return g.convert(&received), nil
}

func (g *github) edit(ctx context.Context, op string, current *PullRequest, content Content) error {
	if current.Title == content.Title && sameText(current.Body, content.Body) {
		return nil
	}
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPatch, path: g.path("pulls", decimal(current.Number)), about: "the pull request",
		in: struct {
			Title string `json:"title"`
			Body  string `json:"body"`
		}{content.Title, content.Body},
	})
	return err
}

func (g *github) label(ctx context.Context, op string, current *PullRequest, labels []string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("issues", decimal(current.Number), "labels"), about: "the pull request",
		in: struct {
			Labels []string `json:"labels"`
		}{labels},
	})
	return err
}

// reviewRequest is the request for reviewers of GitHub and Gitea.
type reviewRequest struct {
	Reviewers     []string `json:"reviewers,omitempty"`
	TeamReviewers []string `json:"team_reviewers,omitempty"`
}

// newReviewRequest separates users and teams. A team is written as organization/team.
func newReviewRequest(reviewers []string) reviewRequest {
	var request reviewRequest
	for _, reviewer := range reviewers {
		if _, team, isTeam := strings.Cut(reviewer, "/"); isTeam {
			request.TeamReviewers = append(request.TeamReviewers, team)
		} else {
			request.Reviewers = append(request.Reviewers, reviewer)
		}
	}
	return request
}

// reviewed implements api. A user who has reviewed is no longer among the requested reviewers.
func (g *github) reviewed(ctx context.Context, op string, current *PullRequest) ([]string, error) {
	return reviewedBy(ctx, g.client, op, g.path("pulls", decimal(current.Number), "reviews"), "per_page")
}

func (g *github) review(ctx context.Context, op string, current *PullRequest, reviewers []string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("pulls", decimal(current.Number), "requested_reviewers"),
		in: newReviewRequest(reviewers), about: "one of the reviewers " + strings.Join(reviewers, ", "), isReference: true,
	})
	return err
}

// reviewedBy returns the logins of the users who have reviewed a pull request at GitHub or Gitea.
func reviewedBy(ctx context.Context, c *client, op string, path []string, sizeName string) ([]string, error) {
	var logins []string
	err := pages(op, commentPages, func(current page) (bool, error) {
		var received list[struct {
			User githubUser `json:"user"`
		}]
		header, err := c.do(ctx, call{
			op: op, method: http.MethodGet, path: path, query: current.in(url.Values{}, "page", sizeName), out: &received,
			about: "the pull request",
		})
		for _, review := range received {
			logins = append(logins, review.User.Login)
		}
		return hasMore(header, len(received), current), err
	})
	return logins, err
}

func (g *github) comments(ctx context.Context, op string, number int64, page page) ([]string, bool, error) {
	var received list[struct{ Body string }]
	header, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("issues", decimal(number), "comments"),
		query: page.in(url.Values{}, "page", "per_page"), out: &received, about: "the pull request",
	})
	var texts []string
	for _, comment := range received {
		texts = append(texts, comment.Body)
	}
	return texts, hasMore(header, len(received), page), err
}

// newComment is the request for a comment of GitHub, GitLab and Gitea.
type newComment struct {
	Body string `json:"body"`
}

func (g *github) comment(ctx context.Context, op string, number int64, text string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("issues", decimal(number), "comments"), in: newComment{text}, about: "the pull request",
	})
	return err
}

// newState is the request that closes a pull request of GitHub or Gitea.
type newState struct {
	State string `json:"state"`
}

func (g *github) close(ctx context.Context, op string, number int64) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPatch, path: g.path("pulls", decimal(number)), in: newState{"closed"}, about: "the pull request",
	})
	return err
}
