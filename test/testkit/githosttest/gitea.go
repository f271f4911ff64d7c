// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	giteaTitle = 255
	giteaPage  = 50
)

// gitea is the front end for Gitea and Forgejo.
type gitea struct{ *Server }

// routes registers the API.
func (g *gitea) routes(mux *http.ServeMux) {
	const repository = "/api/v1/repos/" + owner + "/" + name
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET " + repository + "/pulls":                               g.list,
		"POST " + repository + "/pulls":                              g.create,
		"GET " + repository + "/pulls/{number}":                      g.get,
		"PATCH " + repository + "/pulls/{number}":                    g.edit,
		"GET " + repository + "/pulls/{number}/commits":              g.commits,
		"GET " + repository + "/pulls/{number}/reviews":              g.reviews,
		"POST " + repository + "/pulls/{number}/requested_reviewers": g.requestReviewers,
		"POST " + repository + "/labels":                             g.createLabel,
		"POST " + repository + "/issues/{number}/labels":             g.addLabels,
		"GET " + repository + "/issues/{number}/timeline":            g.timeline,
		"GET " + repository + "/issues/{number}/comments":            g.comments,
		"POST " + repository + "/issues/{number}/comments":           g.addComment,
		"/": func(w http.ResponseWriter, _ *http.Request) { g.notFound(w) },
	} {
		mux.HandleFunc(pattern, g.authorized(handler))
	}
}

func (g *gitea) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		user, password, isBasic := r.BasicAuth()
		header := r.Header.Get("Authorization")
		if header != "token "+Token && header != "Bearer "+Token && !(isBasic && user == Bot && password == Token) {
			g.fail(w, http.StatusUnauthorized, "user does not exist [uid: 0, name: ]")
			return
		}
		next(w, r)
	}
}

func (g *gitea) fail(w http.ResponseWriter, status int, message string) {
	respond(w, status, object{"message": message, "url": g.server.URL + "/api/swagger"})
}

func (g *gitea) notFound(w http.ResponseWriter) {
	respond(w, http.StatusNotFound, object{
		"message": "The target couldn't be found.", "url": g.server.URL + "/api/swagger", "errors": []string{},
	})
}

// commits has the last commit of a pull request, which does not change after its end.
func (g *gitea) commits(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "page", "limit", "verification", "files")
	if p := g.numberOf(r); p != nil {
		respond(w, http.StatusOK, []object{{"sha": p.HeadSHA}})
		return
	}
	g.notFound(w)
}

// giteaEllipsis truncates a title of too many bytes. Gitea does so by the width of characters.
func giteaEllipsis(title string) string {
	if len(title) <= giteaTitle {
		return title
	}
	return strings.ToValidUTF8(title[:giteaTitle/2], "") + "…"
}

func (g *gitea) isDraft(p *pull) bool {
	title := strings.ToUpper(p.Title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

func (g *gitea) branch(label, ref, sha string, repository int) object {
	return object{"label": label, "ref": ref, "sha": sha, "repo_id": repository, "repo": object{"id": repository}}
}

func (g *gitea) view(p *pull) object {
	headRepository, ref := 1, p.Head
	if p.FromFork {
		headRepository = 2
	}
	sha, exists := g.resolve(p.Head) // Also that of one that has ended.
	if !exists {
		ref, sha = fmt.Sprintf("refs/pull/%d/head", p.Number), p.HeadSHA
	}
	state := "closed"
	if p.State == Open {
		state = "open"
	}
	page := fmt.Sprintf("%s/%s/%s/pulls/%d", g.server.URL, owner, name, p.Number)
	view := object{
		"id": 1000 + p.Number, "number": p.Number, "url": page, "html_url": page, "user": g.user(Bot), "title": p.Title, "body": p.Body,
		"draft": g.isDraft(p), "state": state, "merged": p.State == Merged, "merged_at": nil, "merged_by": nil, "merge_commit_sha": nil,
		"created_at": optional(p.Created), "updated_at": optional(p.Updated), "closed_at": optional(p.Ended),
		"head": g.branch(p.Head, ref, sha, headRepository), "base": g.branch(p.Base, p.Base, g.branches[p.Base], 1),
	}
	if p.State == Merged {
		view["merged_at"], view["merged_by"], view["merge_commit_sha"] = optional(p.Ended), g.user(p.EndedBy), p.MergeCommit
	}
	users, teams := []any{}, []object{}
	for _, reviewer := range p.Reviewers {
		if _, team, isTeam := strings.Cut(reviewer, "/"); isTeam {
			teams = append(teams, object{"id": 1, "name": team})
		} else {
			users = append(users, g.user(reviewer))
		}
	}
	view["labels"], view["requested_reviewers"], view["requested_reviewers_teams"] = g.labelViews(p), users, teams
	return view
}

func (g *gitea) labelViews(p *pull) []object {
	views := []object{}
	for _, label := range p.Labels {
		views = append(views, object{"id": slices.Index(g.labels, label) + 1, "name": label, "color": "ededed"})
	}
	return views
}

// list has no filter for the head.
func (g *gitea) list(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "base_branch", "state", "sort", "milestone", "labels", "poster", "page", "limit")
	query := r.URL.Query()
	state := query.Get("state")
	found := g.selected(func(p *pull) bool {
		return (state == "all" || (state == "closed") != (p.State == Open)) &&
			(query.Get("base_branch") == "" || p.Base == query.Get("base_branch"))
	})
	if query.Get("sort") == "recentupdate" {
		slices.SortStableFunc(found, func(a, b *pull) int { return b.Updated.Compare(a.Updated) })
	}
	views := []object{}
	for _, p := range pageOf(w, r, found, "limit", pageUsual, giteaPage) {
		view := g.view(p)
		view["merged_by"] = nil // Lists do not have it.
		views = append(views, view)
	}
	w.Header().Set("X-Total-Count", fmt.Sprint(len(found)))
	respond(w, http.StatusOK, views)
}

func (g *gitea) create(w http.ResponseWriter, r *http.Request) {
	var request struct{ Title, Head, Base, Body string }
	if !g.decode(r, &request) {
		g.fail(w, http.StatusUnprocessableEntity, "[]: json")
		return
	}
	for field, value := range map[string]string{"Title": request.Title, "Head": request.Head, "Base": request.Base} {
		if value == "" {
			g.fail(w, http.StatusUnprocessableEntity, "["+field+"]: Required")
			return
		}
	}
	_, hasHead := g.resolve(request.Head)
	_, hasBase := g.resolve(request.Base)
	existing := g.existing(request.Head, request.Base)
	switch {
	case request.Head == request.Base:
		g.fail(w, http.StatusUnprocessableEntity, "Invalid PullRequest: There are no changes between the head and the base")
	case !hasHead || !hasBase:
		g.notFound(w)
	case existing != nil:
		g.fail(w, http.StatusConflict, fmt.Sprintf("pull request already exists for these targets [id: %d, issue_id: %d, head_repo_id: 1, "+
			"base_repo_id: 1, head_branch: %s, base_branch: %s]", 1000+existing.Number, existing.Number, request.Head, request.Base))
	default:
		p := g.add(PullRequest{Title: giteaEllipsis(request.Title), Body: request.Body, Head: request.Head, Base: request.Base})
		respond(w, http.StatusCreated, g.view(g.find(p.Number)))
	}
}

func (g *gitea) get(w http.ResponseWriter, r *http.Request) {
	if p := g.numberOf(r); p != nil {
		respond(w, http.StatusOK, g.view(p))
		return
	}
	g.notFound(w)
}

func (g *gitea) edit(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Title, Body, State, Base *string }
	switch {
	case p == nil:
		g.notFound(w)
	case !g.decode(r, &request):
		g.fail(w, http.StatusUnprocessableEntity, "[]: json")
	case request.State != nil && p.State == Merged:
		g.fail(w, http.StatusPreconditionFailed, "cannot change state of this pull request, it was already merged")
	default:
		if deref(request.Title, "") != "" {
			p.Title = giteaEllipsis(*request.Title)
		}
		p.Body, p.Base = deref(request.Body, p.Body), deref(request.Base, p.Base)
		if deref(request.State, "") == "closed" {
			g.end(p, Bot)
		}
		respond(w, http.StatusCreated, g.view(p))
	}
}

func (g *gitea) reviews(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "page", "limit")
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	views := []object{}
	for i, reviewer := range pageOf(w, r, p.Reviews, "limit", pageUsual, giteaPage) {
		views = append(views, object{"id": i + 1, "user": g.user(reviewer), "state": "COMMENT"})
	}
	respond(w, http.StatusOK, views)
}

func (g *gitea) requestReviewers(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	if p == nil {
		g.notFound(w)
		return
	}
	reviewers, unknown, ok := g.readReviewers(r)
	switch {
	case !ok:
		g.fail(w, http.StatusUnprocessableEntity, "[]: json")
	case unknown != "":
		respond(w, http.StatusNotFound, object{
			"message": "UserNotExist", "url": g.server.URL + "/api/swagger", "errors": []string{"User '" + unknown + "' not exist"},
		})
	case slices.Contains(reviewers, Bot):
		g.fail(w, http.StatusUnprocessableEntity, "poster of pr can't be reviewer")
	default:
		p.request(reviewers...)
		respond(w, http.StatusCreated, []object{})
	}
}

func (g *gitea) createLabel(w http.ResponseWriter, r *http.Request) {
	var request struct{ Name, Color, Description string }
	if !g.decode(r, &request) || request.Name == "" || !strings.HasPrefix(request.Color, "#") {
		g.fail(w, http.StatusUnprocessableEntity, "[Name]: Required")
		return
	}
	g.labels = append(g.labels, request.Name)
	respond(w, http.StatusCreated, object{"id": len(g.labels), "name": request.Name, "color": strings.TrimPrefix(request.Color, "#")})
}

// addLabels ignores names that the repository does not have.
func (g *gitea) addLabels(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Labels []string }
	switch {
	case p == nil:
		g.notFound(w)
	case !g.decode(r, &request):
		g.fail(w, http.StatusUnprocessableEntity, "[]: json")
	default:
		for _, label := range request.Labels {
			if slices.Contains(g.labels, label) {
				p.label(label)
			}
		}
		respond(w, http.StatusOK, g.labelViews(p))
	}
}

// timeline returns the events since a time, without a link to the next page.
func (g *gitea) timeline(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "since", "before", "page", "limit")
	p := g.numberOf(r)
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	switch {
	case p == nil:
		g.fail(w, http.StatusInternalServerError, "")
	case err != nil && r.URL.Query().Get("since") != "":
		g.fail(w, http.StatusUnprocessableEntity, err.Error())
	default:
		respond(w, http.StatusOK, g.events(p, since))
	}
}

// events returns the events of a pull request since a time, the oldest first, and nil if there are none.
func (g *gitea) events(p *pull, since time.Time) []object {
	var before, after []object
	for i, text := range p.Comments {
		event := object{"id": i + 1, "type": "comment", "body": text, "user": g.user(Bot), "created_at": optional(p.commentTimes[i])}
		switch at := p.commentTimes[i]; {
		case at.Before(since):
		case at.Before(p.Ended):
			before = append(before, event)
		default:
			after = append(after, event)
		}
	}
	if p.State == Closed && !p.Ended.Before(since) {
		before = append(before, object{"id": 1000, "type": "close", "user": g.user(p.EndedBy), "created_at": optional(p.Ended)})
	}
	return append(before, after...)
}

// comments returns all comments on one page.
func (g *gitea) comments(w http.ResponseWriter, r *http.Request) {
	g.checkQuery(r, "since", "before")
	p := g.numberOf(r)
	if p == nil {
		g.fail(w, http.StatusInternalServerError, "")
		return
	}
	views := []object{}
	for i, text := range p.Comments {
		views = append(views, object{"id": i + 1, "body": text, "user": g.user(Bot), "created_at": optional(p.commentTimes[i])})
	}
	respond(w, http.StatusOK, views)
}

func (g *gitea) addComment(w http.ResponseWriter, r *http.Request) {
	p := g.numberOf(r)
	var request struct{ Body string }
	switch {
	case p == nil:
		g.notFound(w)
	case !g.decode(r, &request) || request.Body == "":
		g.fail(w, http.StatusUnprocessableEntity, "[Body]: Required")
	default:
		g.comment(p, request.Body)
		respond(w, http.StatusCreated, object{"id": len(p.Comments), "body": request.Body, "user": g.user(Bot)})
	}
}
