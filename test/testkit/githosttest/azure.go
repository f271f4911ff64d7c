// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	azureTitle       = 400
	azureDescription = 4000
	// azureListed is how much of a description lists contain.
	azureListed = 400
	heads       = "refs/heads/"
)

// azure is the front end for Azure DevOps Services.
type azure struct{ *Server }

// azureID returns the identifier of a user.
func azureID(id int64) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", id) }

// routes registers the API. Its paths are not case-sensitive, but only these spellings are used.
func (a *azure) routes(mux *http.ServeMux) {
	const requests = "/" + owner + "/{project}/_apis/git/repositories/" + name + "/pullrequests"
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET " + requests:                              a.list,
		"POST " + requests:                             a.create,
		"GET " + requests + "/{number}":                a.get,
		"PATCH " + requests + "/{number}":              a.edit,
		"GET " + requests + "/{number}/labels":         a.listLabels,
		"POST " + requests + "/{number}/labels":        a.addLabel,
		"PUT " + requests + "/{number}/reviewers/{id}": a.addReviewer,
		"GET " + requests + "/{number}/threads":        a.threads,
		"POST " + requests + "/{number}/threads":       a.addThread,
		"/": func(w http.ResponseWriter, _ *http.Request) {
			a.fail(w, http.StatusNotFound, "TF401019: The Git repository with name or identifier does not exist or you do not have permissions "+
				"for the operation you are attempting.", "GitRepositoryNotFoundException")
		},
	} {
		mux.HandleFunc(pattern, a.authorized(handler))
	}
}

// authorized sends the login page for an invalid token, as Azure DevOps does.
func (a *azure) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		_, password, isBasic := r.BasicAuth()
		switch project := r.PathValue("project"); {
		case r.Header.Get("Authorization") != "Bearer "+Token && !(isBasic && password == Token):
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			_, _ = io.WriteString(w, "<html><title>Azure DevOps Services | Sign In</title></html>") // The client may have disconnected.
		case r.URL.Query().Get("api-version") != "7.1":
			a.fail(w, http.StatusBadRequest, "No api-version was supplied for the request.", "VssVersionNotSpecifiedException")
		case project != "" && project != azureProject:
			a.fail(w, http.StatusNotFound, "TF200016: The following project does not exist: "+project+".", "ProjectDoesNotExistWithNameException")
		default:
			next(w, r)
		}
	}
}

func (a *azure) fail(w http.ResponseWriter, status int, message, kind string) {
	respond(w, status, azureError(message, kind))
}

func azureError(message, kind string) object {
	return object{
		"$id": "1", "innerException": nil, "message": message, "typeName": "Microsoft.TeamFoundation.Git.Server." + kind, "typeKey": kind,
		"errorCode": 0, "eventId": 3000,
	}
}

func azureErrorBody(message, kind string) string {
	encoded, _ := json.Marshal(azureError(message, kind)) // Texts can always be encoded.
	return string(encoded)
}

func (a *azure) notFound(w http.ResponseWriter) {
	a.fail(w, http.StatusNotFound, "TF401180: The requested pull request was not found.", "GitPullRequestNotFoundException")
}

func (a *azure) identity(user string) any {
	if user == "" {
		return nil
	}
	return object{"id": azureID(a.userID(user)), "displayName": strings.ToUpper(user[:1]) + user[1:], "uniqueName": user}
}

func (a *azure) view(p *pull) object {
	view := object{
		"pullRequestId": p.Number, "codeReviewId": p.Number, "title": p.Title, "isDraft": p.Draft, "createdBy": a.identity(Bot),
		"status":       map[State]string{Open: "active", Merged: "completed", Closed: "abandoned"}[p.State],
		"creationDate": p.Created.Format("2006-01-02T15:04:05.0000000Z07:00"), "sourceRefName": heads + p.Head, "targetRefName": heads + p.Base,
		"mergeStatus": "succeeded", "lastMergeSourceCommit": object{"commitId": p.HeadSHA},
		"url":        fmt.Sprintf("%s/_apis/git/repositories/1/pullRequests/%d", a.APIURL, p.Number),
		"repository": object{"id": "1", "name": name, "project": object{"id": "1", "name": azureProject}},
	}
	if p.Body != "" {
		view["description"] = p.Body
	}
	if p.FromFork {
		view["forkSource"] = object{"name": heads + p.Head, "repository": object{"id": "2"}}
	}
	if p.State != Open {
		view["closedDate"], view["closedBy"] = p.Ended.Format("2006-01-02T15:04:05.0000000Z07:00"), a.identity(p.EndedBy)
	}
	if p.State == Merged {
		view["lastMergeCommit"] = object{"commitId": p.MergeCommit}
	}
	reviewers := []any{}
	for _, reviewer := range p.Reviewers {
		reviewers = append(reviewers, a.identity(reviewer))
	}
	view["reviewers"] = reviewers
	return view
}

func (a *azure) list(w http.ResponseWriter, r *http.Request) {
	a.checkQuery(r, "api-version", "searchCriteria.sourceRefName", "searchCriteria.targetRefName", "searchCriteria.status", "$top", "$skip")
	query := r.URL.Query()
	status := map[string]State{"active": Open, "": Open, "completed": Merged, "abandoned": Closed}[query.Get("searchCriteria.status")]
	found := a.selected(func(p *pull) bool {
		return (query.Get("searchCriteria.status") == "all" || p.State == status) &&
			heads+p.Head == query.Get("searchCriteria.sourceRefName") && heads+p.Base == query.Get("searchCriteria.targetRefName")
	})
	skip, _ := strconv.Atoi(query.Get("$skip")) // A missing number is 0.
	top, err := strconv.Atoi(query.Get("$top"))
	if err != nil {
		top = pageLargest
	}
	found = found[min(skip, len(found)):min(skip+top, len(found))]
	views := []object{}
	for _, p := range found {
		view := a.view(p)
		if units := utf16.Encode([]rune(p.Body)); len(units) > azureListed {
			view["description"] = string(utf16.Decode(units[:azureListed]))
		}
		views = append(views, view)
	}
	respond(w, http.StatusOK, object{"value": views, "count": len(views)})
}

func (a *azure) create(w http.ResponseWriter, r *http.Request) {
	var request struct {
		SourceRefName, TargetRefName, Title, Description string
		IsDraft                                          bool
	}
	if !a.decode(r, &request) {
		a.fail(w, http.StatusBadRequest, "TF400898: The request cannot be read.", "InvalidArgumentValueException")
		return
	}
	head, isHead := strings.CutPrefix(request.SourceRefName, heads)
	base, isBase := strings.CutPrefix(request.TargetRefName, heads)
	_, hasHead := a.resolve(head)
	_, hasBase := a.resolve(base)
	switch {
	case !isHead || !isBase || !hasHead || !hasBase:
		a.fail(w, http.StatusBadRequest, "TF401398: The pull request cannot be activated because the source and/or the target branch no "+
			"longer exists, or the requested refs are not branches.", "GitPullRequestCannotBeActivatedException")
	case a.existing(head, base) != nil:
		a.fail(w, http.StatusConflict, "TF401179: An active pull request for the source and target branch already exists.",
			"GitPullRequestExistsException")
	case !a.checkTexts(w, request.Title, request.Description):
	default:
		p := a.add(PullRequest{Title: request.Title, Body: request.Description, Head: head, Base: base, Draft: request.IsDraft})
		respond(w, http.StatusCreated, a.view(a.find(p.Number)))
	}
}

// checkTexts reports whether texts are present and not too long.
func (a *azure) checkTexts(w http.ResponseWriter, title, description string) bool {
	if title == "" || len(utf16.Encode([]rune(title))) > azureTitle || len(utf16.Encode([]rune(description))) > azureDescription {
		a.fail(w, http.StatusBadRequest, "A title is required, and must not be longer than 400 characters; a description must not be longer "+
			"than 4000 characters.", "InvalidArgumentValueException")
		return false
	}
	return true
}

func (a *azure) get(w http.ResponseWriter, r *http.Request) {
	if p := a.numberOf(r); p != nil {
		respond(w, http.StatusOK, a.view(p))
		return
	}
	a.notFound(w)
}

func (a *azure) edit(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	var request struct {
		Title, Description, Status *string
		IsDraft                    *bool
	}
	switch {
	case p == nil:
		a.notFound(w)
	case !a.decode(r, &request):
		a.fail(w, http.StatusBadRequest, "TF400898: The request cannot be read.", "InvalidArgumentValueException")
	case p.State != Open:
		a.fail(w, http.StatusConflict, "TF401181: The pull request cannot be edited due to its state.", "GitPullRequestNotEditableException")
	case !a.checkTexts(w, deref(request.Title, p.Title), deref(request.Description, p.Body)):
	default:
		p.Title, p.Body = deref(request.Title, p.Title), deref(request.Description, p.Body)
		if request.IsDraft != nil {
			p.Draft = *request.IsDraft
		}
		if deref(request.Status, "") == "abandoned" {
			a.end(p, Bot)
		}
		respond(w, http.StatusOK, a.view(p))
	}
}

func (a *azure) listLabels(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	if p == nil {
		a.notFound(w)
		return
	}
	views := []object{}
	for i, label := range p.Labels {
		views = append(views, object{"id": azureID(int64(i)), "name": label, "active": true})
	}
	respond(w, http.StatusOK, object{"value": views, "count": len(views)})
}

func (a *azure) addLabel(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	var request struct{ Name string }
	switch {
	case p == nil:
		a.notFound(w)
	case !a.decode(r, &request) || request.Name == "":
		a.fail(w, http.StatusBadRequest, "The name of the label is missing.", "InvalidArgumentValueException")
	default:
		p.label(request.Name)
		respond(w, http.StatusOK, object{"id": azureID(1), "name": request.Name, "active": true})
	}
}

func (a *azure) addReviewer(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	var request struct {
		ID   string
		Vote int
	}
	if p == nil {
		a.notFound(w)
		return
	}
	if !a.decode(r, &request) {
		a.fail(w, http.StatusBadRequest, "TF400898: The request cannot be read.", "InvalidArgumentValueException")
		return
	}
	for i, user := range a.users {
		if azureID(int64(i+1)) == r.PathValue("id") && request.ID == r.PathValue("id") {
			p.request(user)
			respond(w, http.StatusOK, a.identity(user))
			return
		}
	}
	a.fail(w, http.StatusBadRequest, "TF401195: The identity "+request.ID+" is not valid.", "IdentityNotFoundException")
}

// threads returns all threads, with one that the host made.
func (a *azure) threads(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	if p == nil {
		a.notFound(w)
		return
	}
	threads := []object{{"id": 1, "comments": []object{{"id": 1, "content": "The reference was updated.", "commentType": "system"}}}}
	for i, text := range p.Comments {
		comment := object{"id": 1, "parentCommentId": 0, "content": text, "commentType": "text", "author": a.identity(Bot)}
		threads = append(threads, object{"id": i + 2, "status": "closed", "comments": []object{comment}})
	}
	respond(w, http.StatusOK, object{"value": threads, "count": len(threads)})
}

func (a *azure) addThread(w http.ResponseWriter, r *http.Request) {
	p := a.numberOf(r)
	var request struct {
		Comments []struct {
			ParentCommentID      int
			Content, CommentType string
		}
		Status string
	}
	switch {
	case p == nil:
		a.notFound(w)
	case !a.decode(r, &request) || len(request.Comments) != 1 || request.Comments[0].Content == "":
		a.fail(w, http.StatusBadRequest, "The comment is missing.", "InvalidArgumentValueException")
	default:
		a.comment(p, request.Comments[0].Content)
		respond(w, http.StatusOK, object{"id": len(p.Comments) + 1, "status": request.Status, "comments": request.Comments})
	}
}
