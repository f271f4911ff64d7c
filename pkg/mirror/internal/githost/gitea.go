// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// eventPage is the number of events that are read after a pull request was closed. Gitea has at most 50 on a page.
const eventPage = 50

// gitea is the API of Gitea and Forgejo, which resembles GitHub's.
type gitea struct {
	*client
	owner, name string
}

var _ api = (*gitea)(nil)

// limits implements api. Gitea states no limit for texts, and truncates titles of more than 255 bytes itself.
func (*gitea) limits() limits {
	return limits{
		host: "Slipstream", title: 255, titleInBytes: true, body: maxQuoted, comment: maxQuoted,
		draftPrefixes: []string{"WIP:", "[WIP]", "Draft:", "[Draft]"},
	}
}

// complete implements api: lists do not say who merged or closed.
func (*gitea) complete(listed *PullRequest) bool { return listed.State == Open }

// path returns a path below the repository.
func (g *gitea) path(segments ...string) []string {
	return append([]string{"repos", g.owner, g.name}, segments...)
}

type giteaBranch struct {
	// Label is the branch, Ref another name for it once it is deleted.
	Label  string `json:"label"`
	SHA    string `json:"sha"`
	RepoID int64  `json:"repo_id"`
}

type giteaPullRequest struct {
	Number             int64                   `json:"number"`
	HTMLURL            string                  `json:"html_url"`
	State              string                  `json:"state"`
	Title              string                  `json:"title"`
	Body               string                  `json:"body"`
	Draft              bool                    `json:"draft"`
	CreatedAt          time.Time               `json:"created_at"`
	ClosedAt           time.Time               `json:"closed_at"`
	Merged             bool                    `json:"merged"`
	MergedAt           time.Time               `json:"merged_at"`
	MergedBy           githubUser              `json:"merged_by"`
	MergeCommitSHA     string                  `json:"merge_commit_sha"`
	Head               giteaBranch             `json:"head"`
	Base               giteaBranch             `json:"base"`
	Labels             []struct{ Name string } `json:"labels"`
	RequestedReviewers []githubUser            `json:"requested_reviewers"`
	RequestedTeams     []struct{ Name string } `json:"requested_reviewers_teams"`
}

func (g *gitea) convert(p *giteaPullRequest) *PullRequest {
	title, isDraft := g.limits().cutDraft(p.Title)
	converted := &PullRequest{
		Number: p.Number, URL: pageURL(p.HTMLURL), Title: title, Body: p.Body, Head: p.Head.Label, HeadSHA: p.Head.SHA, Base: p.Base.Label,
		State: Open, Draft: isDraft || p.Draft, Created: p.CreatedAt,
	}
	for _, label := range p.Labels {
		converted.Labels = append(converted.Labels, label.Name)
	}
	for _, reviewer := range p.RequestedReviewers {
		converted.Reviewers = append(converted.Reviewers, reviewer.Login)
	}
	for _, team := range p.RequestedTeams {
		converted.Reviewers = append(converted.Reviewers, g.owner+"/"+team.Name)
	}
	switch {
	case p.Merged:
		converted.State, converted.Ended, converted.EndedBy = Merged, p.MergedAt, person(p.MergedBy.Login)
		converted.MergeCommit = p.MergeCommitSHA
	case p.State != "open":
		converted.State, converted.Ended = Closed, p.ClosedAt
	}
	return converted
}

// list implements api. The API has no filter for the head, and old versions have none for the base. Open ones are listed by their last
// update, because a push is one: however many are open, that of a branch which was just pushed is among the first. The request for a pull
// request by its branches is not used, because it returns any of them, such as one that was merged long ago.
func (g *gitea) list(ctx context.Context, op string, filter filter, page page) ([]*PullRequest, bool, error) {
	query := url.Values{"state": {"all"}, "base_branch": {filter.base}}
	if filter.open {
		query.Set("state", "open")
		query.Set("sort", "recentupdate")
	}
	var received list[giteaPullRequest]
	header, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("pulls"), query: page.in(query, "page", "limit"), out: &received,
	})
	if err != nil {
		return nil, false, err
	}
	var found []*PullRequest
	for i := range received {
		if received[i].Head.RepoID == received[i].Base.RepoID {
			found = append(found, g.convert(&received[i]))
		}
	}
	return found, hasMore(header, len(received), page), nil
}

func (g *gitea) get(ctx context.Context, op string, number int64) (*PullRequest, error) {
	var received giteaPullRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("pulls", decimal(number)), out: &received, about: "the pull request",
	})
	if err != nil {
		return nil, err
	}
	found := g.convert(&received)
	if found.State == Open {
		return found, nil
	}
	if found.HeadSHA, err = g.lastCommit(ctx, op, number); err != nil || found.State == Merged {
		return found, err
	}
	found.EndedBy, err = g.closer(ctx, op, found)
	return withoutCloser(found, err)
}

// lastCommit returns the last commit of a pull request that has ended; empty if it cannot be read, which some versions of Gitea fail to do
// once the history of the base was replaced. The pull request itself has the present commit of the branch.
func (g *gitea) lastCommit(ctx context.Context, op string, number int64) (string, error) {
	var commits list[struct{ SHA string }]
	query := page{1, 1}.in(url.Values{"files": {"false"}, "verification": {"false"}}, "page", "limit")
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("pulls", decimal(number), "commits"), query: query, out: &commits, about: "the pull request",
	})
	if failed, ok := errors.AsType[*Error](err); ok && failed.Kind != RateLimited {
		return "", nil
	}
	if err != nil || len(commits) == 0 {
		return "", err
	}
	return commits[0].SHA, nil // The newest is the first.
}

// closer returns who closed a pull request without merging it. Only the timeline says so. It is read from the time of the closing, so one
// page is enough.
func (g *gitea) closer(ctx context.Context, op string, closed *PullRequest) (string, error) {
	query := url.Values{"since": {closed.Ended.Add(-time.Second).UTC().Format(time.RFC3339)}}
	var events list[struct {
		Type string     `json:"type"`
		User githubUser `json:"user"`
	}]
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("issues", decimal(closed.Number), "timeline"),
		query: page{1, eventPage}.in(query, "page", "limit"), out: &events, about: "the pull request",
	})
	closer := ""
	for _, event := range events {
		if event.Type == "close" {
			closer = event.User.Login
		}
	}
	return person(closer), err
}

func (g *gitea) create(ctx context.Context, op, head, base string, content Content) (*PullRequest, error) {
	var received giteaPullRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("pulls"), out: &received, about: "the repository or one of the branches",
		in: struct {
			Title string `json:"title"`
			Head  string `json:"head"`
			Base  string `json:"base"`
			Body  string `json:"body"`
		}{g.limits().titleOf(content), head, base, content.Body},
	})
	if err != nil {
		return nil, err
	}
	return g.convert(&received), nil
}

func (g *gitea) edit(ctx context.Context, op string, current *PullRequest, content Content) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPatch, path: g.path("pulls", decimal(current.Number)), about: "the pull request",
		in: struct {
			Title string `json:"title"`
			Body  string `json:"body"`
		}{g.limits().titleOf(content), content.Body},
	})
	return err
}

// setDraft implements api. edit has written it.
func (*gitea) setDraft(context.Context, string, *PullRequest, bool) error { return nil }

// label implements api. The API ignores names that neither the repository nor its organization has, so these are created.
func (g *gitea) label(ctx context.Context, op string, current *PullRequest, labels []string) error {
	present, err := g.addLabels(ctx, op, current.Number, labels)
	if err != nil {
		return err
	}
	unknown := missing(present, labels)
	if len(unknown) == 0 {
		return nil
	}
	for _, name := range unknown {
		_, err := g.do(ctx, call{
			op: op, method: http.MethodPost, path: g.path("labels"),
			in: struct {
				Name  string `json:"name"`
				Color string `json:"color"`
			}{name, "#ededed"},
		})
		if err != nil {
			return err
		}
	}
	_, err = g.addLabels(ctx, op, current.Number, unknown)
	return err
}

// addLabels adds labels by name and returns those that the pull request has.
func (g *gitea) addLabels(ctx context.Context, op string, number int64, names []string) ([]string, error) {
	var received list[struct{ Name string }]
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("issues", decimal(number), "labels"), out: &received, about: "the pull request",
		in: struct {
			Labels []string `json:"labels"`
		}{names},
	})
	var present []string
	for _, label := range received {
		present = append(present, label.Name)
	}
	return present, err
}

// reviewed implements api. A user who has reviewed is no longer among the requested reviewers.
func (g *gitea) reviewed(ctx context.Context, op string, current *PullRequest) ([]string, error) {
	return reviewedBy(ctx, g.client, op, g.path("pulls", decimal(current.Number), "reviews"), "limit")
}

func (g *gitea) review(ctx context.Context, op string, current *PullRequest, reviewers []string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("pulls", decimal(current.Number), "requested_reviewers"),
		in: newReviewRequest(reviewers), about: "one of the reviewers " + strings.Join(reviewers, ", "), isReference: true,
	})
	return err
}

// comments implements api. The API has all comments on one page.
func (g *gitea) comments(ctx context.Context, op string, number int64, _ page) ([]string, bool, error) {
	var received list[newComment]
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path("issues", decimal(number), "comments"), out: &received, limit: maxUnpaged,
		about: "the pull request",
	})
	var texts []string
	for _, comment := range received {
		texts = append(texts, comment.Body)
	}
	return texts, false, err
}

func (g *gitea) comment(ctx context.Context, op string, number int64, text string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path("issues", decimal(number), "comments"), in: newComment{text}, about: "the pull request",
	})
	return err
}

func (g *gitea) close(ctx context.Context, op string, number int64) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPatch, path: g.path("pulls", decimal(number)), in: newState{"closed"}, about: "the pull request",
	})
	return err
}
