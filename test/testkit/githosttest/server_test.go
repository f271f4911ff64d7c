// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

// request makes a request below the API and returns status and body.
func request(t *testing.T, s *githosttest.Server, method, path, token, body string) (int, string) {
	t.Helper()
	made, err := http.NewRequestWithContext(t.Context(), method, s.APIURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	made.Header.Set("Content-Type", "application/json")
	made.Header.Set("Authorization", "Bearer "+token)
	made.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	response, err := s.Client().Do(made)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // The body is read to its end.
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// pulls are the paths of pull requests.
var pulls = map[githosttest.Kind]string{
	githosttest.GitHub:      "/repos/acme/clusters/pulls",
	githosttest.GitLab:      "/projects/acme%2Fplatform%2Fclusters/merge_requests",
	githosttest.Gitea:       "/repos/acme/clusters/pulls",
	githosttest.AzureDevOps: "/Team%20One/_apis/git/repositories/clusters/pullrequests?api-version=7.1",
}

func TestRefusedRequests(t *testing.T) {
	const good, bad = githosttest.Token, "another"
	for name, test := range map[string]struct {
		kind        githosttest.Kind
		token, body string
		status      int
		text        string
	}{
		"GitHub, token":      {githosttest.GitHub, bad, `{}`, 401, "Bad credentials"},
		"GitHub, no head":    {githosttest.GitHub, good, `{"title":"x","base":"main"}`, 422, `"field":"head"`},
		"GitHub, unknown":    {githosttest.GitHub, good, `{"title":"x","head":"y","base":"main"}`, 422, `"code":"invalid"`},
		"GitHub, equal":      {githosttest.GitHub, good, `{"title":"x","head":"main","base":"main"}`, 422, "No commits between main and main"},
		"GitHub, twice":      {githosttest.GitHub, good, `{"title":"x","head":"b","base":"main"}`, 422, "A pull request already exists for acme:b."},
		"GitHub, long title": {githosttest.GitHub, good, `{"title":"` + strings.Repeat("x", 257) + `","head":"c","base":"main"}`, 422, "too long"},
		"GitLab, token":      {githosttest.GitLab, bad, `{}`, 401, "401 Unauthorized"},
		"GitLab, no title":   {githosttest.GitLab, good, `{"source_branch":"b","target_branch":"main"}`, 400, "title is missing"},
		"GitLab, unknown":    {githosttest.GitLab, good, `{"title":"x","source_branch":"y","target_branch":"main"}`, 400, "does not exist"},
		"GitLab, twice":      {githosttest.GitLab, good, `{"title":"x","source_branch":"b","target_branch":"main"}`, 409, "!1"},
		"Gitea, token":       {githosttest.Gitea, bad, `{}`, 401, "user does not exist"},
		"Gitea, no base":     {githosttest.Gitea, good, `{"title":"x","head":"b"}`, 422, "[Base]: Required"},
		"Gitea, unknown":     {githosttest.Gitea, good, `{"title":"x","head":"y","base":"main"}`, 404, "couldn't be found"},
		"Gitea, twice":       {githosttest.Gitea, good, `{"title":"x","head":"b","base":"main"}`, 409, "pull request already exists"},
		"Azure, token":       {githosttest.AzureDevOps, bad, `{}`, 203, "Sign In"},
		"Azure, no prefix":   {githosttest.AzureDevOps, good, `{"title":"x","sourceRefName":"b","targetRefName":"main"}`, 400, "TF401398"},
		"Azure, no title":    {githosttest.AzureDevOps, good, azureBody("", "c", ""), 400, "A title is required"},
		"Azure, long":        {githosttest.AzureDevOps, good, azureBody("x", "c", strings.Repeat("x", 4001)), 400, "4000"},
		"Azure, twice":       {githosttest.AzureDevOps, good, azureBody("x", "b", ""), 409, "TF401179"},
	} {
		t.Run(name, func(t *testing.T) {
			s := githosttest.New(t, test.kind)
			s.Push("b", "1111111111111111111111111111111111111111")
			s.Push("c", "2222222222222222222222222222222222222222")
			s.Add(githosttest.PullRequest{Head: "b", Base: githosttest.Base})
			status, text := request(t, s, http.MethodPost, pulls[test.kind], test.token, test.body)
			if status != test.status || !strings.Contains(text, test.text) {
				t.Errorf("the response is %d %s", status, text)
			}
			if all := s.PullRequests(); len(all) != 1 {
				t.Errorf("there are %d pull requests", len(all))
			}
		})
	}
}

func azureBody(title, head, description string) string {
	encoded, _ := json.Marshal(map[string]string{ // Texts can always be encoded.
		"title": title, "sourceRefName": "refs/heads/" + head, "targetRefName": "refs/heads/main", "description": description,
	})
	return string(encoded)
}

func TestGitBesideTheAPI(t *testing.T) {
	git := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "git "+r.URL.Path) })
	branches := func(branch string) (string, bool) {
		return "3333333333333333333333333333333333333333", branch == "from-git"
	}
	for _, kind := range githosttest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := githosttest.New(t, kind, githosttest.WithGit(git), githosttest.WithBranches(branches))
			s.Down()
			response, err := s.Client().Get(s.RepoURL + "/info/refs?service=git-upload-pack")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }() // The body is read to its end.
			if text, err := io.ReadAll(response.Body); err != nil || !strings.HasPrefix(string(text), "git /") || len(s.Calls()) > 0 {
				t.Errorf("Git gets %q, %v; calls: %v", text, err, s.Calls())
			}
			s.Up()
			number := s.Add(githosttest.PullRequest{Head: "from-git", Base: githosttest.Base})
			status, text := request(t, s, http.MethodGet, onePull(kind, number), githosttest.Token, "")
			if status != http.StatusOK || !strings.Contains(text, "3333333333333333333333333333333333333333") {
				t.Errorf("the response is %d %s", status, text)
			}
		})
	}
}

// onePull returns the path of a pull request with a number of one digit.
func onePull(kind githosttest.Kind, number int64) string {
	path, query, _ := strings.Cut(pulls[kind], "?")
	return path + "/" + string(rune('0'+number)) + "?" + query
}
