// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// gitlab is the API of GitLab, version 4.
type gitlab struct {
	*client
	// project is the path of the project, with its groups.
	project string
}

var _ api = (*gitlab)(nil)

func (*gitlab) limits() limits {
	return limits{
		host: "Slipstream", title: 255, body: maxQuoted, comment: maxQuoted, hasQuickActions: true,
		draftPrefixes: []string{"Draft:", "[Draft]", "(Draft)"},
	}
}

// complete implements api.
func (*gitlab) complete(*PullRequest) bool { return true }

// path returns a path below the merge requests of the project.
func (g *gitlab) path(segments ...string) []string {
	return append([]string{"projects", g.project, "merge_requests"}, segments...)
}

type gitlabUser struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

type gitlabMergeRequest struct {
	IID             int64        `json:"iid"`
	WebURL          string       `json:"web_url"`
	State           string       `json:"state"`
	Title           string       `json:"title"`
	Description     string       `json:"description"`
	Draft           bool         `json:"draft"`
	SourceBranch    string       `json:"source_branch"`
	TargetBranch    string       `json:"target_branch"`
	SourceProjectID int64        `json:"source_project_id"`
	TargetProjectID int64        `json:"target_project_id"`
	SHA             string       `json:"sha"`
	CreatedAt       time.Time    `json:"created_at"`
	MergedAt        time.Time    `json:"merged_at"`
	ClosedAt        time.Time    `json:"closed_at"`
	MergedBy        gitlabUser   `json:"merged_by"`
	MergeUser       gitlabUser   `json:"merge_user"`
	ClosedBy        gitlabUser   `json:"closed_by"`
	MergeCommitSHA  string       `json:"merge_commit_sha"`
	SquashCommitSHA string       `json:"squash_commit_sha"`
	Labels          []string     `json:"labels"`
	Reviewers       []gitlabUser `json:"reviewers"`
}

func (g *gitlab) convert(m *gitlabMergeRequest) *PullRequest {
	title, isDraft := g.limits().cutDraft(m.Title)
	converted := &PullRequest{
		Number: m.IID, URL: pageURL(m.WebURL), Title: title, Body: m.Description, Head: m.SourceBranch, HeadSHA: m.SHA, Base: m.TargetBranch,
		State: Open, Draft: isDraft || m.Draft, Created: m.CreatedAt, Labels: m.Labels,
	}
	for _, reviewer := range m.Reviewers {
		converted.Reviewers = append(converted.Reviewers, reviewer.Username)
	}
	switch m.State {
	case "merged":
		converted.State, converted.Ended = Merged, m.MergedAt
		converted.EndedBy = person(cmp.Or(m.MergeUser.Username, m.MergedBy.Username))
		// A fast-forward has no commit of its own.
		converted.MergeCommit = cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA)
	case "closed":
		converted.State, converted.Ended, converted.EndedBy = Closed, m.ClosedAt, person(m.ClosedBy.Username)
	}
	return converted
}

func (g *gitlab) list(ctx context.Context, op string, filter filter, page page) ([]*PullRequest, bool, error) {
	query := url.Values{
		"source_branch": {filter.head}, "target_branch": {filter.base}, "scope": {"all"}, "order_by": {"created_at"}, "sort": {"desc"},
		"state": {"all"},
	}
	if filter.open {
		query.Set("state", "opened")
	}
	if !filter.since.IsZero() {
		query.Set("created_after", filter.since.UTC().Format(time.RFC3339))
	}
	var received list[gitlabMergeRequest]
	header, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path(), query: page.in(query, "page", "per_page"), out: &received, about: "the project",
	})
	if err != nil {
		return nil, false, err
	}
	var found []*PullRequest
	for i := range received {
		if received[i].SourceProjectID == received[i].TargetProjectID {
			found = append(found, g.convert(&received[i]))
		}
	}
	return found, hasMore(header, len(received), page), nil
}

func (g *gitlab) read(ctx context.Context, op string, number int64) (*gitlabMergeRequest, error) {
	var received gitlabMergeRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path(decimal(number)), out: &received, about: "the merge request",
	})
	return &received, err
}

func (g *gitlab) get(ctx context.Context, op string, number int64) (*PullRequest, error) {
	received, err := g.read(ctx, op, number)
	if err != nil {
		return nil, err
	}
	return g.convert(received), nil
}

// gitlabChange is the request that creates or changes a merge request.
type gitlabChange struct {
	SourceBranch string  `json:"source_branch,omitempty"`
	TargetBranch string  `json:"target_branch,omitempty"`
	Title        string  `json:"title,omitempty"`
	Description  *string `json:"description,omitempty"`
	AddLabels    string  `json:"add_labels,omitempty"`
	ReviewerIDs  []int64 `json:"reviewer_ids,omitempty"`
	StateEvent   string  `json:"state_event,omitempty"`
}

func (g *gitlab) create(ctx context.Context, op, head, base string, content Content) (*PullRequest, error) {
	var received gitlabMergeRequest
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path(), out: &received, about: "the project",
		in: gitlabChange{SourceBranch: head, TargetBranch: base, Title: g.limits().titleOf(content), Description: &content.Body},
	})
	if err != nil {
		return nil, err
	}
	return g.convert(&received), nil
}

func (g *gitlab) change(ctx context.Context, op string, number int64, change gitlabChange) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPut, path: g.path(decimal(number)), in: change, about: "the merge request",
	})
	return err
}

func (g *gitlab) edit(ctx context.Context, op string, current *PullRequest, content Content) error {
	return g.change(ctx, op, current.Number, gitlabChange{Title: g.limits().titleOf(content), Description: &content.Body})
}

// setDraft implements api. edit has written it.
func (*gitlab) setDraft(context.Context, string, *PullRequest, bool) error { return nil }

// label implements api. Labels are separated by commas, which they cannot contain.
func (g *gitlab) label(ctx context.Context, op string, current *PullRequest, labels []string) error {
	const separator = ","
	if slices.ContainsFunc(labels, func(label string) bool { return strings.Contains(label, separator) }) {
		return &Error{Kind: Invalid, Op: op, Message: "a label of GitLab cannot contain a comma"}
	}
	return g.change(ctx, op, current.Number, gitlabChange{AddLabels: strings.Join(labels, separator)})
}

// reviewed implements api. Reviewers remain.
func (*gitlab) reviewed(context.Context, string, *PullRequest) ([]string, error) { return nil, nil }

// review implements api. The API replaces the reviewers, so it sends those who are there now as well.
func (g *gitlab) review(ctx context.Context, op string, current *PullRequest, reviewers []string) error {
	now, err := g.read(ctx, op, current.Number)
	if err != nil {
		return err
	}
	var ids []int64
	for _, reviewer := range now.Reviewers {
		ids = append(ids, reviewer.ID)
	}
	for _, reviewer := range missing(g.convert(now).Reviewers, reviewers) {
		id, err := g.userID(ctx, op, reviewer)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	return g.change(ctx, op, current.Number, gitlabChange{ReviewerIDs: ids})
}

// userID returns the identifier of a user.
func (g *gitlab) userID(ctx context.Context, op, username string) (int64, error) {
	var users list[gitlabUser]
	_, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: []string{"users"}, query: url.Values{"username": {username}}, out: &users,
	})
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(users, func(user gitlabUser) bool { return strings.EqualFold(user.Username, username) })
	if at < 0 {
		return 0, &Error{Kind: Invalid, Op: op, Message: "GitLab has no user " + person(username) + ", who shall review"}
	}
	return users[at].ID, nil
}

func (g *gitlab) comments(ctx context.Context, op string, number int64, page page) ([]string, bool, error) {
	var received list[newComment]
	header, err := g.do(ctx, call{
		op: op, method: http.MethodGet, path: g.path(decimal(number), "notes"), out: &received, about: "the merge request",
		query: page.in(url.Values{"order_by": {"created_at"}, "sort": {"desc"}}, "page", "per_page"),
	})
	var texts []string
	for _, note := range received {
		texts = append(texts, note.Body)
	}
	return texts, hasMore(header, len(received), page), err
}

func (g *gitlab) comment(ctx context.Context, op string, number int64, text string) error {
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, path: g.path(decimal(number), "notes"), in: newComment{text}, about: "the merge request",
	})
	return err
}

func (g *gitlab) close(ctx context.Context, op string, number int64) error {
	return g.change(ctx, op, number, gitlabChange{StateEvent: "close"})
}
