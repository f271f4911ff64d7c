// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	gitlabTitle = 255
	gitlabBody  = 1 << 20
)

// gitlab is the front end for GitLab.
type gitlab struct{ *Server }

// routes registers the API. A project is one segment, in which slashes are escaped.
func (g *gitlab) routes(mux *http.ServeMux) {
	const requests = "/api/v4/projects/{project}/merge_requests"
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET " + requests:                      g.list,
		"POST " + requests:                     g.create,
		"GET " + requests + "/{number}":        g.get,
		"PUT " + requests + "/{number}":        g.edit,
		"GET " + requests + "/{number}/notes":  g.notes,
		"POST " + requests + "/{number}/notes": g.addNote,
		"GET /api/v4/users":                    g.findUsers,
		"/": func(w http.ResponseWriter, _ *http.Request) {
			respond(w, http.StatusNotFound, object{"error": "404 Not Found"})
		},
	} {
		mux.HandleFunc(pattern, g.authorized(handler))
	}
}

func (g *gitlab) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		switch project := r.PathValue("project"); {
		case r.Header.Get("Authorization") != "Bearer "+Token && r.Header.Get("Private-Token") != Token:
			g.fail(w, http.StatusUnauthorized, "401 Unauthorized")
		case project != "" && project != gitlabProject && project != "1":
			g.fail(w, http.StatusNotFound, "404 Project Not Found")
		default:
			next(w, r)
		}
	}
}

func (g *gitlab) fail(w http.ResponseWriter, status int, message any) {
	respond(w, status, object{"message": message})
}

// user returns a user, null for an empty name.
func (g *gitlab) user(username string) any {
	if username == "" {
		return nil
	}
	return object{"id": g.userID(username), "username": username, "name": username, "state": "active"}
}

func (g *gitlab) isDraft(p *pull) bool {
	title := strings.ToLower(p.Title)
	return strings.HasPrefix(title, "draft:") || strings.HasPrefix(title, "[draft]") || strings.HasPrefix(title, "(draft)")
}

func (g *gitlab) moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

func (g *gitlab) view(p *pull) object {
	source := 1
	if p.FromFork {
		source = 2
	}
	view := object{
		"id": 1000 + p.Number, "iid": p.Number, "project_id": 1, "source_project_id": source, "target_project_id": 1,
		"title": p.Title, "description": p.Body, "draft": g.isDraft(p), "work_in_progress": g.isDraft(p), "sha": p.HeadSHA,
		"source_branch": p.Head, "target_branch": p.Base, "author": g.user(Bot), "state": map[State]string{
			Open: "opened", Merged: "merged", Closed: "closed",
		}[p.State],
		"web_url":    fmt.Sprintf("%s/%s/-/merge_requests/%d", g.server.URL, gitlabProject, p.Number),
		"created_at": g.moment(p.Created), "merged_at": nil, "closed_at": nil, "merged_by": nil, "merge_user": nil, "closed_by": nil,
		"merge_commit_sha": nil, "squash_commit_sha": nil, "labels": append([]string{}, p.Labels...),
	}
	switch p.State {
	case Merged:
		view["merged_at"], view["merged_by"], view["merge_user"] = g.moment(p.Ended), g.user(p.EndedBy), g.user(p.EndedBy)
		view["merge_commit_sha"] = p.MergeCommit
	case Closed:
		view["closed_at"], view["closed_by"] = g.moment(p.Ended), g.user(p.EndedBy)
	case Open:
	}
	reviewers := []any{}
	for _, reviewer := range p.Reviewers {
		reviewers = append(reviewers, g.user(reviewer))
	}
	view["reviewers"] = reviewers
	return view
}

func (g *gitlab) list(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "state", "source_branch", "target_branch", "scope", "order_by", "sort", "created_after", "page", "per_page")
	query := r.URL.Query()
	state := map[string]State{"opened": Open, "closed": Closed, "merged": Merged}[query.Get("state")]
	var after time.Time
	if text := query.Get("created_after"); text != "" {
		var err error
		if after, err = time.Parse(time.RFC3339, text); err != nil {
			respond(w, http.StatusBadRequest, object{"error": "created_after is invalid"})
			return
		}
	}
	found := g.selected(func(p *pull) bool {
		return (state == "" || p.State == state) && (query.Get("source_branch") == "" || p.Head == query.Get("source_branch")) &&
			(query.Get("target_branch") == "" || p.Base == query.Get("target_branch")) && !p.Created.Before(after)
	})
	views := []object{}
	for _, p := range pageOf(w, r, found, "per_page", 20, pageLargest) {
		views = append(views, g.view(p))
	}
	respond(w, http.StatusOK, views)
}

// gitlabRequest is a request that creates or changes a merge request.
type gitlabRequest struct {
	SourceBranch string  `json:"source_branch"`
	TargetBranch string  `json:"target_branch"`
	Title        *string `json:"title"`
	Description  *string `json:"description"`
	AddLabels    string  `json:"add_labels"`
	ReviewerIDs  []int64 `json:"reviewer_ids"`
	StateEvent   string  `json:"state_event"`
}

func (g *gitlab) create(w http.ResponseWriter, r *http.Request) {
	var request gitlabRequest
	if !g.decode(r, &request) {
		respond(w, http.StatusBadRequest, object{"error": "invalid JSON"})
		return
	}
	var absent []string
	for _, field := range []struct{ name, value string }{
		{"title", deref(request.Title, "")}, {"source_branch", request.SourceBranch}, {"target_branch", request.TargetBranch},
	} {
		if field.value == "" {
			absent = append(absent, field.name+" is missing")
		}
	}
	_, hasHead := g.resolve(request.SourceBranch)
	_, hasBase := g.resolve(request.TargetBranch)
	existing := g.existing(request.SourceBranch, request.TargetBranch)
	switch {
	case len(absent) > 0:
		respond(w, http.StatusBadRequest, object{"error": strings.Join(absent, ", ")})
	case !hasHead:
		g.fail(w, http.StatusBadRequest, []string{"Source branch \"" + request.SourceBranch + "\" does not exist"})
	case !hasBase:
		g.fail(w, http.StatusBadRequest, []string{"Target branch \"" + request.TargetBranch + "\" does not exist"})
	case existing != nil:
		g.fail(w, http.StatusConflict, []string{
			fmt.Sprintf("Another open merge request already exists for this source branch: !%d", existing.Number),
		})
	default:
		p := &pull{PullRequest: PullRequest{Head: request.SourceBranch, Base: request.TargetBranch}}
		if g.apply(w, p, request) {
			respond(w, http.StatusCreated, g.view(g.find(g.add(p.PullRequest).Number)))
		}
	}
}

// apply changes a merge request, and reports whether the request is valid. GitLab executes lines of a description that are commands.
func (g *gitlab) apply(w http.ResponseWriter, p *pull, request gitlabRequest) bool {
	title, description := deref(request.Title, p.Title), deref(request.Description, p.Body)
	if utf8.RuneCountInString(title) > gitlabTitle {
		g.fail(w, http.StatusBadRequest, object{"title": []string{"is too long (maximum is 255 characters)"}})
		return false
	}
	if utf8.RuneCountInString(description) > gitlabBody {
		g.fail(w, http.StatusBadRequest, object{"description": []string{"is too long (maximum is 1048576 characters)"}})
		return false
	}
	p.Title, p.Body = title, description
	if request.AddLabels != "" {
		p.label(strings.Split(request.AddLabels, ",")...)
	}
	if request.ReviewerIDs != nil {
		p.Reviewers = nil
		for _, id := range request.ReviewerIDs {
			if id >= 1 && id <= int64(len(g.users)) {
				p.request(g.users[id-1])
			}
		}
	}
	if request.StateEvent == "close" {
		g.end(p, Bot)
	}
	g.quickActions(p, description)
	return true
}

// quickActions executes the commands that end a merge request.
func (g *gitlab) quickActions(p *pull, text string) {
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "/merge":
			p.State, p.Ended, p.EndedBy = Merged, g.now(), Bot
		case "/close":
			g.end(p, Bot)
		}
	}
}

func (g *gitlab) get(w http.ResponseWriter, r *http.Request) {
	if p := g.numberOf(r); p != nil {
		respond(w, http.StatusOK, g.view(p))
		return
	}
	g.fail(w, http.StatusNotFound, "404 Not found")
}

func (g *gitlab) edit(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request gitlabRequest
	switch {
	case p == nil:
		g.fail(w, http.StatusNotFound, "404 Not found")
	case !g.decode(r, &request):
		respond(w, http.StatusBadRequest, object{"error": "invalid JSON"})
	case request.StateEvent == "close" && p.State == Merged:
		g.fail(w, http.StatusUnprocessableEntity, object{"state_event": []string{"cannot transition via \"close\""}})
	default:
		if g.apply(w, p, request) {
			respond(w, http.StatusOK, g.view(p))
		}
	}
}

func (g *gitlab) notes(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "order_by", "sort", "page", "per_page")
	p := g.numberOf(r)
	if p == nil {
		g.fail(w, http.StatusNotFound, "404 Not found")
		return
	}
	texts := slices.Clone(p.Comments)
	if r.URL.Query().Get("sort") != "asc" {
		slices.Reverse(texts)
	}
	views := []object{}
	for i, text := range pageOf(w, r, texts, "per_page", 20, pageLargest) {
		views = append(views, object{"id": i + 1, "body": text, "author": g.user(Bot), "system": false})
	}
	respond(w, http.StatusOK, views)
}

func (g *gitlab) addNote(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Body string }
	switch {
	case p == nil:
		g.fail(w, http.StatusNotFound, "404 Not found")
	case !g.decode(r, &request) || request.Body == "":
		respond(w, http.StatusBadRequest, object{"error": "body is missing"})
	default:
		g.comment(p, request.Body)
		g.quickActions(p, request.Body)
		respond(w, http.StatusCreated, object{"id": len(p.Comments), "body": request.Body, "author": g.user(Bot), "system": false})
	}
}

func (g *gitlab) findUsers(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "username")
	views := []any{}
	if username := r.URL.Query().Get("username"); g.userID(username) > 0 {
		views = append(views, g.user(username))
	}
	w.Header().Set("X-Total", strconv.Itoa(len(views)))
	respond(w, http.StatusOK, views)
}
