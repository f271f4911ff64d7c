// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	githubTitle = 256
	githubBody  = 65536
	pageUsual   = 30
	pageLargest = 100
)

// github is the front end for GitHub Enterprise.
type github struct{ *Server }

// object is a JSON object.
type object map[string]any

// routes registers the API.
func (g *github) routes(mux *http.ServeMux) {
	const repository = "/api/v3/repos/" + owner + "/" + name
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET " + repository + "/pulls":                               g.list,
		"POST " + repository + "/pulls":                              g.create,
		"GET " + repository + "/pulls/{number}":                      g.get,
		"PATCH " + repository + "/pulls/{number}":                    g.edit,
		"GET " + repository + "/pulls/{number}/reviews":              g.reviews,
		"POST " + repository + "/pulls/{number}/requested_reviewers": g.requestReviewers,
		"GET " + repository + "/issues/{number}":                     g.issue,
		"POST " + repository + "/issues/{number}/labels":             g.addLabels,
		"GET " + repository + "/issues/{number}/comments":            g.comments,
		"POST " + repository + "/issues/{number}/comments":           g.addComment,
		"POST /api/graphql":                                          g.graphQL,
		"/":                                                          func(w http.ResponseWriter, _ *http.Request) { g.notFound(w) },
	} {
		mux.HandleFunc(pattern, g.authorized(handler))
	}
}

func (g *github) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		switch {
		case r.Header.Get("User-Agent") == "":
			g.fail(w, http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header.")
		case r.Header.Get("Authorization") != "Bearer "+Token:
			g.fail(w, http.StatusUnauthorized, "Bad credentials")
		case r.Header.Get("X-GitHub-Api-Version") != "2022-11-28":
			g.fail(w, http.StatusBadRequest, "The API version is not supported.")
		default:
			w.Header().Set("X-RateLimit-Limit", "5000")
			w.Header().Set("X-RateLimit-Remaining", "4999")
			next(w, r)
		}
	}
}

func (g *github) fail(w http.ResponseWriter, status int, message string, errs ...object) {
	body := object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": fmt.Sprint(status)}
	if len(errs) > 0 {
		body["errors"] = errs
	}
	respond(w, status, body)
}

func (g *github) notFound(w http.ResponseWriter) { g.fail(w, http.StatusNotFound, "Not Found") }

func (g *github) invalid(w http.ResponseWriter, resource, field, code, message string) {
	problem := object{"resource": resource, "code": code}
	if field != "" {
		problem["field"] = field
	}
	if message != "" {
		problem["message"] = message
	}
	g.fail(w, http.StatusUnprocessableEntity, "Validation Failed", problem)
}

// user returns a user, null for an empty name.
func (s *Server) user(login string) any {
	if login == "" {
		return nil
	}
	return object{"login": login, "id": s.userID(login), "type": "User", "html_url": s.server.URL + "/" + login}
}

// optional returns a time, null for the zero one.
func optional(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format(time.RFC3339)
}

// view returns a pull request as lists contain it.
func (g *github) view(p *pull) object {
	repository := object{"id": 1, "full_name": owner + "/" + name}
	head := repository
	if p.FromFork {
		head = object{"id": 2, "full_name": owner + "/" + name + "-fork"}
	}
	state := "closed"
	if p.State == Open {
		state = "open"
	}
	view := object{
		"id": 1000 + p.Number, "number": p.Number, "node_id": fmt.Sprintf("PR_%d", p.Number), "state": state, "locked": false,
		"url":      fmt.Sprintf("%s/repos/%s/%s/pulls/%d", g.APIURL, owner, name, p.Number),
		"html_url": fmt.Sprintf("%s/%s/%s/pull/%d", g.server.URL, owner, name, p.Number),
		"title":    p.Title, "body": p.Body, "draft": p.Draft, "user": g.user(Bot), "merged_at": nil, "merge_commit_sha": nil,
		"created_at": optional(p.Created), "updated_at": optional(p.Created), "closed_at": optional(p.Ended),
		"head": object{"label": owner + ":" + p.Head, "ref": p.Head, "sha": p.HeadSHA, "repo": head},
		"base": object{"label": owner + ":" + p.Base, "ref": p.Base, "sha": g.branches[p.Base], "repo": repository},
	}
	if p.Body == "" {
		view["body"] = nil
	}
	if p.State == Merged {
		view["merged_at"], view["merge_commit_sha"] = optional(p.Ended), p.MergeCommit
	}
	labels, users, teams := []object{}, []any{}, []object{}
	for i, label := range p.Labels {
		labels = append(labels, object{"id": i + 1, "name": label, "color": "ededed", "default": false})
	}
	for _, reviewer := range p.Reviewers {
		if _, team, isTeam := strings.Cut(reviewer, "/"); isTeam {
			teams = append(teams, object{"id": 1, "name": team, "slug": team})
		} else {
			users = append(users, g.user(reviewer))
		}
	}
	view["labels"], view["requested_reviewers"], view["requested_teams"] = labels, users, teams
	return view
}

// fullView returns a pull request as it is read by itself.
func (g *github) fullView(p *pull) object {
	view := g.view(p)
	view["merged"], view["merged_by"], view["mergeable"], view["comments"] = p.State == Merged, nil, nil, len(p.Comments)
	if p.State == Merged {
		view["merged_by"] = g.user(p.EndedBy)
	}
	return view
}

func (g *github) list(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "state", "head", "base", "sort", "direction", "per_page", "page")
	query := r.URL.Query()
	state := query.Get("state")
	// A head without an owner does not filter.
	_, head, hasHead := strings.Cut(query.Get("head"), ":")
	found := g.selected(func(p *pull) bool {
		return (state == "all" || (state == "closed") != (p.State == Open)) && (!hasHead || p.Head == head) &&
			(query.Get("base") == "" || p.Base == query.Get("base"))
	})
	views := []object{}
	for _, p := range pageOf(w, r, found, "per_page", pageUsual, pageLargest) {
		views = append(views, g.view(p))
	}
	respond(w, http.StatusOK, views)
}

func (g *github) create(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Title, Head, Base, Body string
		Draft                   bool
	}
	if !g.decode(r, &request) {
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	for field, value := range map[string]string{"title": request.Title, "head": request.Head, "base": request.Base} {
		if value == "" {
			g.invalid(w, "PullRequest", field, "missing_field", "")
			return
		}
	}
	sha, hasHead := g.resolve(request.Head)
	base, hasBase := g.resolve(request.Base)
	switch {
	case !hasHead:
		g.invalid(w, "PullRequest", "head", "invalid", "")
	case !hasBase:
		g.invalid(w, "PullRequest", "base", "invalid", "")
	case g.existing(request.Head, request.Base) != nil:
		g.invalid(w, "PullRequest", "", "custom", "A pull request already exists for "+owner+":"+request.Head+".")
	case sha == base:
		g.invalid(w, "PullRequest", "", "custom", "No commits between "+request.Base+" and "+request.Head)
	case !g.checkTexts(w, request.Title, request.Body):
	default:
		p := g.add(PullRequest{Title: request.Title, Body: request.Body, Head: request.Head, Base: request.Base, Draft: request.Draft})
		respond(w, http.StatusCreated, g.fullView(g.find(p.Number)))
	}
}

// checkTexts reports whether texts are not too long.
func (g *github) checkTexts(w http.ResponseWriter, title, body string) bool {
	if utf8.RuneCountInString(title) > githubTitle {
		g.invalid(w, "PullRequest", "title", "custom", fmt.Sprintf("title is too long (maximum is %d characters)", githubTitle))
		return false
	}
	if utf8.RuneCountInString(body) > githubBody {
		g.invalid(w, "PullRequest", "body", "custom", fmt.Sprintf("body is too long (maximum is %d characters)", githubBody))
		return false
	}
	return true
}

func (g *github) get(w http.ResponseWriter, r *http.Request) {
	if p := g.numberOf(r); p != nil {
		respond(w, http.StatusOK, g.fullView(p))
		return
	}
	g.notFound(w)
}

func (g *github) edit(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	var request struct{ Title, Body, State, Base *string }
	if !g.decode(r, &request) {
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	if !g.checkTexts(w, deref(request.Title, p.Title), deref(request.Body, p.Body)) {
		return
	}
	p.Title, p.Body, p.Base = deref(request.Title, p.Title), deref(request.Body, p.Body), deref(request.Base, p.Base)
	if deref(request.State, "") == "closed" {
		g.end(p, Bot)
	}
	respond(w, http.StatusOK, g.fullView(p))
}

// deref returns the value of a field, and another one if the request does not have it.
func deref(field *string, otherwise string) string {
	if field == nil {
		return otherwise
	}
	return *field
}

// issue returns the issue of a pull request, which alone says who closed it.
func (g *github) issue(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	respond(w, http.StatusOK, object{"number": p.Number, "title": p.Title, "closed_by": g.user(p.EndedBy), "pull_request": object{}})
}

func (g *github) reviews(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	views := []object{}
	for i, reviewer := range pageOf(w, r, p.Reviews, "per_page", pageUsual, pageLargest) {
		views = append(views, object{"id": i + 1, "user": g.user(reviewer), "state": "COMMENTED"})
	}
	respond(w, http.StatusOK, views)
}

func (g *github) requestReviewers(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	reviewers, unknown, ok := g.readReviewers(r)
	switch {
	case !ok:
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
	case slices.Contains(reviewers, Bot):
		g.fail(w, http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
	case unknown != "":
		g.fail(w, http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you "+
			"specified is not a collaborator of the "+owner+"/"+name+" repository.")
	default:
		p.request(reviewers...)
		respond(w, http.StatusCreated, g.view(p))
	}
}

// readReviewers reads a request for reviewers, and returns one that does not exist.
func (s *Server) readReviewers(r *http.Request) (reviewers []string, unknown string, ok bool) {
	var request struct {
		Reviewers     []string `json:"reviewers"`
		TeamReviewers []string `json:"team_reviewers"`
	}
	if !s.decode(r, &request) {
		return nil, "", false
	}
	for _, login := range request.Reviewers {
		if s.userID(login) == 0 {
			unknown = login
		}
	}
	reviewers = request.Reviewers
	for _, team := range request.TeamReviewers {
		if owner+"/"+team != s.Team {
			unknown = team
		}
		reviewers = append(reviewers, owner+"/"+team)
	}
	return reviewers, unknown, true
}

func (g *github) addLabels(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Labels []string }
	switch {
	case p == nil:
		g.notFound(w)
	case !g.decode(r, &request):
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
	default:
		p.label(request.Labels...)
		respond(w, http.StatusOK, g.view(p)["labels"])
	}
}

func (g *github) comments(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "per_page", "page", "since")
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	views := []object{}
	for i, text := range pageOf(w, r, p.Comments, "per_page", pageUsual, pageLargest) {
		views = append(views, object{"id": i + 1, "body": text, "user": g.user(Bot)})
	}
	respond(w, http.StatusOK, views)
}

func (g *github) addComment(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Body string }
	switch {
	case p == nil:
		g.notFound(w)
	case !g.decode(r, &request):
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
	case request.Body == "" || utf8.RuneCountInString(request.Body) > githubBody:
		g.invalid(w, "IssueComment", "body", "custom", "body is empty or too long")
	default:
		g.comment(p, request.Body)
		respond(w, http.StatusCreated, object{"id": len(p.Comments), "body": request.Body, "user": g.user(Bot)})
	}
}

// graphQL knows the two mutations that change whether a pull request is a draft.
func (g *github) graphQL(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Query     string
		Variables map[string]string
	}
	if !g.decode(r, &request) {
		g.fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	var p *pull
	for _, candidate := range g.pulls {
		if !candidate.deleted && fmt.Sprintf("PR_%d", candidate.Number) == request.Variables["id"] {
			p = candidate
		}
	}
	toDraft := strings.Contains(request.Query, "convertPullRequestToDraft(input: {pullRequestId: $id})")
	toReady := strings.Contains(request.Query, "markPullRequestReadyForReview(input: {pullRequestId: $id})")
	switch {
	case p == nil:
		respond(w, http.StatusOK, object{"data": nil, "errors": []object{{
			"type": "NOT_FOUND", "message": "Could not resolve to a node with the global id of '" + request.Variables["id"] + "'",
		}}})
	case toDraft == toReady || !strings.HasPrefix(request.Query, "mutation($id: ID!)"):
		respond(w, http.StatusOK, object{"errors": []object{{"message": "Parse error on " + request.Query}}})
	default:
		p.Draft = toDraft
		respond(w, http.StatusOK, object{"data": object{}})
	}
}
