// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// azureVersion is the version of the API, which Azure DevOps Services and Azure DevOps Server 2022.1 have.
	azureVersion = "7.1"
	branchPrefix = "refs/heads/"
)

// azure is the API of Azure DevOps Services and Azure DevOps Server.
type azure struct {
	*client
	project, name string
}

var _ api = (*azure)(nil)

func (*azure) limits() limits {
	return limits{host: "Azure DevOps", title: 400, body: 4000, comment: maxQuoted}
}

// complete implements api: lists truncate the description and have no labels.
func (*azure) complete(*PullRequest) bool { return false }

// call returns a request below the pull requests of the repository.
func (a *azure) call(op, method string, segments ...string) call {
	path := append([]string{a.project, "_apis", "git", "repositories", a.name, "pullrequests"}, segments...)
	about := "the pull request"
	if len(segments) == 0 {
		about = "the repository"
	}
	return call{op: op, method: method, path: path, query: url.Values{"api-version": {azureVersion}}, about: about}
}

type azureIdentity struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	UniqueName  string `json:"uniqueName"`
}

// name returns what a user is shown as.
func (i azureIdentity) name() string {
	if i.UniqueName != "" {
		return person(i.UniqueName)
	}
	return person(i.DisplayName)
}

type azureCommit struct {
	CommitID string `json:"commitId"`
}

type azurePullRequest struct {
	PullRequestID         int64           `json:"pullRequestId"`
	Status                string          `json:"status"`
	Title                 string          `json:"title"`
	Description           string          `json:"description"`
	IsDraft               bool            `json:"isDraft"`
	SourceRefName         string          `json:"sourceRefName"`
	TargetRefName         string          `json:"targetRefName"`
	CreationDate          time.Time       `json:"creationDate"`
	ClosedDate            time.Time       `json:"closedDate"`
	ClosedBy              azureIdentity   `json:"closedBy"`
	LastMergeSourceCommit azureCommit     `json:"lastMergeSourceCommit"`
	LastMergeCommit       azureCommit     `json:"lastMergeCommit"`
	Reviewers             []azureIdentity `json:"reviewers"`
	// ForkSource is set if the head is in a fork.
	ForkSource *struct {
		Name string `json:"name"`
	} `json:"forkSource"`
}

func (a *azure) convert(p *azurePullRequest) *PullRequest {
	converted := &PullRequest{
		Number: p.PullRequestID, URL: a.page(p.PullRequestID), Title: p.Title, Body: p.Description, Draft: p.IsDraft,
		Head: strings.TrimPrefix(p.SourceRefName, branchPrefix), Base: strings.TrimPrefix(p.TargetRefName, branchPrefix),
		HeadSHA: p.LastMergeSourceCommit.CommitID, State: Open, Created: p.CreationDate,
	}
	for _, reviewer := range p.Reviewers {
		converted.Reviewers = append(converted.Reviewers, reviewer.ID)
	}
	switch p.Status {
	case "completed":
		converted.State, converted.Ended, converted.EndedBy = Merged, p.ClosedDate, p.ClosedBy.name()
		converted.MergeCommit = p.LastMergeCommit.CommitID
	case "abandoned":
		converted.State, converted.Ended, converted.EndedBy = Closed, p.ClosedDate, p.ClosedBy.name()
	}
	return converted
}

// page returns the address of the page of a pull request. The API returns only that of the API.
func (a *azure) page(number int64) string {
	return a.base.JoinPath(url.PathEscape(a.project), azureRepository, url.PathEscape(a.name), "pullrequest", decimal(number)).String()
}

func (a *azure) list(ctx context.Context, op string, filter filter, page page) ([]*PullRequest, bool, error) {
	request := a.call(op, http.MethodGet)
	request.query.Set("searchCriteria.sourceRefName", branchPrefix+filter.head)
	request.query.Set("searchCriteria.targetRefName", branchPrefix+filter.base)
	request.query.Set("searchCriteria.status", "all")
	if filter.open {
		request.query.Set("searchCriteria.status", "active")
	}
	request.query.Set("$top", strconv.Itoa(page.size))
	request.query.Set("$skip", strconv.Itoa((page.number-1)*page.size))
	var received struct {
		Value list[azurePullRequest] `json:"value"`
	}
	request.out = &received
	if _, err := a.do(ctx, request); err != nil {
		return nil, false, err
	}
	var found []*PullRequest
	for i := range received.Value {
		if received.Value[i].ForkSource == nil {
			found = append(found, a.convert(&received.Value[i]))
		}
	}
	return found, len(received.Value) >= page.size, nil
}

// get implements api. The labels are read by themselves, because a pull request that is read by its number has none.
func (a *azure) get(ctx context.Context, op string, number int64) (*PullRequest, error) {
	var received azurePullRequest
	request := a.call(op, http.MethodGet, decimal(number))
	request.out = &received
	if _, err := a.do(ctx, request); err != nil {
		return nil, err
	}
	found := a.convert(&received)
	var labels struct {
		Value list[struct {
			Name string `json:"name"`
		}] `json:"value"`
	}
	request = a.call(op, http.MethodGet, decimal(number), "labels")
	request.out = &labels
	if _, err := a.do(ctx, request); err != nil {
		return nil, err
	}
	for _, label := range labels.Value {
		found.Labels = append(found.Labels, label.Name)
	}
	return found, nil
}

func (a *azure) create(ctx context.Context, op, head, base string, content Content) (*PullRequest, error) {
	var received azurePullRequest
	request := a.call(op, http.MethodPost)
	request.out = &received
	request.in = struct {
		SourceRefName string `json:"sourceRefName"`
		TargetRefName string `json:"targetRefName"`
		Title         string `json:"title"`
		Description   string `json:"description"`
		IsDraft       bool   `json:"isDraft"`
	}{branchPrefix + head, branchPrefix + base, content.Title, content.Body, content.Draft}
	if _, err := a.do(ctx, request); err != nil {
		return nil, err
	}
	return a.convert(&received), nil
}

func (a *azure) edit(ctx context.Context, op string, current *PullRequest, content Content) error {
	request := a.call(op, http.MethodPatch, decimal(current.Number))
	request.in = struct {
		Title       string `json:"title"`
		Description string `json:"description"`
		IsDraft     bool   `json:"isDraft"`
	}{content.Title, content.Body, content.Draft}
	_, err := a.do(ctx, request)
	return err
}

// setDraft implements api. edit has written it.
func (*azure) setDraft(context.Context, string, *PullRequest, bool) error { return nil }

func (a *azure) label(ctx context.Context, op string, current *PullRequest, labels []string) error {
	for _, name := range labels {
		request := a.call(op, http.MethodPost, decimal(current.Number), "labels")
		request.in = struct {
			Name string `json:"name"`
		}{name}
		if _, err := a.do(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// reviewed implements api. Reviewers remain.
func (*azure) reviewed(context.Context, string, *PullRequest) ([]string, error) { return nil, nil }

func (a *azure) review(ctx context.Context, op string, current *PullRequest, reviewers []string) error {
	for _, reviewer := range reviewers {
		if !guid.MatchString(reviewer) {
			return &Error{Kind: Invalid, Op: op, Message: "the reviewer " + person(reviewer) + " must be the identifier (GUID) of a user or a " +
				"group: Azure DevOps resolves no names"}
		}
		request := a.call(op, http.MethodPut, decimal(current.Number), "reviewers", reviewer)
		request.about, request.isReference = "the reviewer "+reviewer, true
		request.in = struct {
			ID   string `json:"id"`
			Vote int    `json:"vote"`
		}{reviewer, 0}
		if _, err := a.do(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

type azureComment struct {
	Content     string `json:"content"`
	CommentType string `json:"commentType"`
	ParentID    int    `json:"parentCommentId"`
}

// comments implements api. The API has all threads on one page, and a thread for each push.
func (a *azure) comments(ctx context.Context, op string, number int64, _ page) ([]string, bool, error) {
	var received struct {
		Value list[struct {
			Comments list[azureComment] `json:"comments"`
		}] `json:"value"`
	}
	request := a.call(op, http.MethodGet, decimal(number), "threads")
	request.out, request.limit = &received, maxUnpaged
	_, err := a.do(ctx, request)
	var texts []string
	for _, thread := range received.Value {
		for _, comment := range thread.Comments {
			texts = append(texts, comment.Content)
		}
	}
	return texts, false, err
}

func (a *azure) comment(ctx context.Context, op string, number int64, text string) error {
	request := a.call(op, http.MethodPost, decimal(number), "threads")
	// An active thread could block the pull request by a policy, so it is closed.
	request.in = struct {
		Comments []azureComment `json:"comments"`
		Status   string         `json:"status"`
	}{[]azureComment{{Content: text, CommentType: "text"}}, "closed"}
	_, err := a.do(ctx, request)
	return err
}

func (a *azure) close(ctx context.Context, op string, number int64) error {
	request := a.call(op, http.MethodPatch, decimal(number))
	request.in = struct {
		Status string `json:"status"`
	}{"abandoned"}
	_, err := a.do(ctx, request)
	return err
}
