// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/test/testkit/githosttest"
)

func TestRateLimits(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		f.RateLimit(10 * time.Minute)
		_, err := f.host.Open(f.Context(), branch, githosttest.Base)
		if wait := wantError(f.T, err, githost.RateLimited, "2026-05-04T12:10:00Z"); wait != 10*time.Minute {
			f.Errorf("the wait is %s", wait)
		}
		f.Up()
		f.create(f.content())
	})
}

func TestRateLimitHeaders(t *testing.T) {
	secondary := `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	for name, test := range map[string]struct {
		kind  githosttest.Kind
		fault githosttest.Fault
		want  time.Duration
	}{
		"GitHub, secondary":      {githosttest.GitHub, githosttest.Respond(403, secondary), time.Minute},
		"GitHub, with a wait":    {githosttest.GitHub, githosttest.Respond(403, secondary, "Retry-After", "90"), 90 * time.Second},
		"GitHub, 429 and a date": {githosttest.GitHub, githosttest.Respond(429, "", "Retry-After", "Mon, 04 May 2026 12:05:00 GMT"), 5 * time.Minute},
		"a limit in the past": {
			githosttest.GitHub, githosttest.Respond(403, "{}", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1"), time.Minute,
		},
		"a limit without end": {
			githosttest.GitHub, githosttest.Respond(403, "{}", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9223372036854775807"),
			time.Hour,
		},
		"a wait without end": {githosttest.Gitea, githosttest.Respond(429, "", "Retry-After", strings.Repeat("9", 30)), time.Hour},
		"no number":          {githosttest.Gitea, githosttest.Respond(429, "", "Retry-After", "soon"), time.Minute},
		"GitLab, only a reset": {
			githosttest.GitLab, githosttest.Respond(429, "", "RateLimit-Remaining", "0", "RateLimit-Reset", "1777896030"), 30 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.kind)
			f.Always(test.fault)
			_, err := f.host.Get(t.Context(), 1)
			if wait := wantError(t, err, githost.RateLimited); wait != test.want {
				t.Errorf("the wait is %s, want %s", wait, test.want)
			}
		})
	}
}

func TestTokens(t *testing.T) {
	good := githosttest.Token
	for name, test := range map[string]struct {
		kind  githosttest.Kind
		token githost.Token
		want  githost.ErrorKind
	}{
		"GitHub":                     {githosttest.GitHub, githost.Token{Value: good}, ""},
		"GitHub, from basic":         {githosttest.GitHub, githost.Token{Value: good, Basic: true, Username: "git"}, ""},
		"GitHub, wrong":              {githosttest.GitHub, githost.Token{Value: "wrong"}, githost.Unauthorized},
		"GitLab, from basic":         {githosttest.GitLab, githost.Token{Value: good, Basic: true, Username: "git"}, ""},
		"GitLab, wrong":              {githosttest.GitLab, githost.Token{Value: "wrong"}, githost.Unauthorized},
		"Gitea":                      {githosttest.Gitea, githost.Token{Value: good}, ""},
		"Gitea, password":            {githosttest.Gitea, githost.Token{Value: good, Basic: true, Username: githosttest.Bot}, ""},
		"Gitea, wrong":               {githosttest.Gitea, githost.Token{Value: "wrong"}, githost.Unauthorized},
		"Azure DevOps, Entra":        {githosttest.AzureDevOps, githost.Token{Value: good}, ""},
		"Azure DevOps, personal":     {githosttest.AzureDevOps, githost.Token{Value: good, Basic: true}, ""},
		"Azure DevOps, wrong":        {githosttest.AzureDevOps, githost.Token{Value: "wrong", Basic: true}, githost.Unauthorized},
		"empty":                      {githosttest.GitHub, githost.Token{}, githost.Unauthorized},
		"with a header of its own":   {githosttest.GitHub, githost.Token{Value: good + "\r\nX-Evil: 1"}, githost.Unauthorized},
		"a user with a line end":     {githosttest.Gitea, githost.Token{Value: good, Basic: true, Username: "a\nb"}, githost.Unauthorized},
		"with a line end at its end": {githosttest.AzureDevOps, githost.Token{Value: good + "\n"}, githost.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.kind)
			_, err := f.newHost(githost.Options{Token: token(test.token)}).Open(t.Context(), branch, githosttest.Base)
			if test.want == "" && err != nil {
				t.Error(err)
			}
			if test.want != "" {
				wantError(t, err, test.want, "find the open pull request: ", "replace it in the Secret")
			}
		})
	}
}

func TestTokenError(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		refused := errors.New("the App is suspended")
		host := f.newHost(githost.Options{Token: func(context.Context, string) (githost.Token, error) { return githost.Token{}, refused }})
		if _, err := host.Get(f.Context(), 1); !errors.Is(err, refused) || len(f.Calls()) > 0 {
			f.Errorf("Get returns %v after %v", err, f.Calls())
		}
	})
}

// TestRefusedToken checks that a request whose token the host refuses is repeated once, if there is another token.
func TestRefusedToken(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		f.create(f.content())
		isBasic := f.Kind() == githosttest.AzureDevOps
		for next, calls := range map[string]int{"revoked": 1, "revoked, too": 2, githosttest.Token: 0} {
			host := f.newHost(githost.Options{Token: func(_ context.Context, refused string) (githost.Token, error) {
				if refused == "revoked" {
					return githost.Token{Value: next, Basic: isBasic}, nil
				}
				return githost.Token{Value: "revoked", Basic: isBasic}, nil
			}})
			before := len(f.Calls())
			_, err := host.Get(f.Context(), 1)
			if next == githosttest.Token {
				if err != nil {
					f.Error(err)
				}
				continue
			}
			wantError(f.T, err, githost.Unauthorized, "does not accept the token")
			if got := len(f.Calls()) - before; got != calls {
				f.Errorf("%d requests with the next token %q, want %d", got, next, calls)
			}
		}
	})
}

func TestFailures(t *testing.T) {
	json := githosttest.Respond
	html := func(status int) githosttest.Fault {
		return githosttest.Respond(status, "<html>"+githosttest.Token, "Content-Type", "text/html")
	}
	for name, test := range map[string]struct {
		kind  githosttest.Kind
		fault githosttest.Fault
		want  githost.ErrorKind
		texts []string
	}{
		"GitHub, permission": {
			githosttest.GitHub, json(403, `{"message":"Resource not accessible by integration"}`, "X-Accepted-GitHub-Permissions",
				"pull_requests=write; contents=write"),
			githost.Unauthorized, []string{"lacks the permission pull_requests: write or contents: write", "Resource not accessible by integration"},
		},
		"GitHub, scope": {
			githosttest.GitHub, json(403, `{"message":"no"}`, "X-Accepted-OAuth-Scopes", "repo"), githost.Unauthorized,
			[]string{"lacks one of the scopes repo"},
		},
		"GitHub, archived": {
			githosttest.GitHub, json(403, `{"message":"Repository was archived so is read-only."}`), githost.Refused, []string{"unarchive it"},
		},
		"GitHub, hidden": {githosttest.GitHub, json(404, `{"message":"Not Found"}`), githost.NotFound, []string{"or the token may not see it"}},
		"GitHub, validation": {
			githosttest.GitHub, json(422, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"},`+
				`{"message":"No commits between main and x"}]}`),
			githost.Invalid, []string{"Validation Failed; head invalid; No commits between main and x"},
		},
		"GitLab, scope": {
			githosttest.GitLab, json(403, `{"error":"insufficient_scope","error_description":"needs api"}`), githost.Unauthorized,
			[]string{"lacks the scope api", "insufficient_scope; needs api"},
		},
		"GitLab, fields": {
			githosttest.GitLab, json(400, `{"message":{"title":["is too long"]}}`), githost.Invalid, []string{"title: is too long"},
		},
		"Gitea, scope": {
			githosttest.Gitea, json(403, `{"message":"token does not have at least one of required scope(s)"}`), githost.Unauthorized,
			[]string{"write:repository", "required scope(s)"},
		},
		"Gitea, archived": {githosttest.Gitea, json(423, `{"message":"repo is archived"}`), githost.Refused, []string{"423 Locked"}},
		"Azure DevOps, permission": {
			githosttest.AzureDevOps, json(403, `{"message":"TF401027: You need the Git 'PullRequestContribute' permission"}`),
			githost.Unauthorized, []string{"Contribute to pull requests", "TF401027"},
		},
		"Azure DevOps, login": {
			githosttest.AzureDevOps, json(302, "", "Location", "https://spsprodeus.vssps.visualstudio.com/_signin?realm=x"),
			githost.Unauthorized, []string{"replace it in the Secret"},
		},
		"a login page":            {githosttest.GitHub, html(200), githost.Protocol, []string{"does not respond with JSON"}},
		"a failure with a page":   {githosttest.GitHub, html(502), githost.Unreachable, []string{"failed (502 Bad Gateway)"}},
		"a failure with a wait":   {githosttest.Gitea, json(503, "{}", "Retry-After", "7"), githost.Unreachable, nil},
		"no JSON":                 {githosttest.Gitea, json(200, "{"), githost.Protocol, []string{"JSON that cannot be read"}},
		"another JSON":            {githosttest.Gitea, json(200, `[{"number":"x"}]`), githost.Protocol, []string{"JSON that cannot be read"}},
		"an unknown status":       {githosttest.Gitea, json(999, "{}"), githost.Protocol, []string{"999"}},
		"deep JSON":               {githosttest.Gitea, json(400, strings.Repeat(`{"message":`, 20000)), githost.Invalid, nil},
		"a list of many messages": {githosttest.Gitea, json(400, `{"errors":[`+strings.Repeat(`"a","b",`, 9999)+`"c"]}`), githost.Invalid, nil},
		"control characters": {
			githosttest.Gitea, json(400, `{"message":"a\u001b[31m\u202eb\nc"}`), githost.Invalid, []string{": a [31m b c"},
		},
		"the token in a message": {
			githosttest.Gitea, json(400, `{"message":"bad `+githosttest.Token+`"}`), githost.Invalid, []string{"bad [REDACTED]"},
		},
		"a long message":      {githosttest.Gitea, json(400, `{"message":"`+strings.Repeat("ä", 5000)+`"}`), githost.Invalid, []string{"…"}},
		"another host":        {githosttest.Gitea, json(301, "", "Location", "https://evil.example/x?token=1"), githost.Refused, []string{"https://evil.example/x,"}},
		"a renamed one":       {githosttest.GitHub, json(301, "", "Location", "/repositories/1/pulls"), githost.Refused, []string{"put its new URL into repoUrl"}},
		"no target":           {githosttest.Gitea, json(302, "", "Location", "%"), githost.Unreachable, nil},
		"a closed one":        {githosttest.Gitea, githosttest.Drop, githost.Unreachable, []string{"failed"}},
		"a huge failure":      {githosttest.Gitea, json(400, strings.Repeat("a", 2<<20)), githost.Invalid, nil},
		"an endless response": {githosttest.Gitea, endless, githost.Protocol, []string{"more than the 1024 KiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.kind)
			f.Always(test.fault)
			_, err := f.host.Open(t.Context(), branch, githosttest.Base)
			wait := wantError(t, err, test.want, append(test.texts, "find the open pull request: ")...)
			if (wait == 7*time.Second) != strings.HasSuffix(name, "with a wait") {
				t.Errorf("the wait is %s", wait)
			}
		})
	}
}

// endless sends JSON without an end, until the client closes the connection.
func endless(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for err := error(nil); err == nil; {
		_, err = io.WriteString(w, strings.Repeat(" ", 4096))
	}
}

// spaces is a body without an end.
type spaces struct{ read *int }

func (s spaces) Read(into []byte) (int, error) {
	*s.read += len(into)
	return copy(into, strings.Repeat(" ", len(into))), nil
}

func (spaces) Close() error { return nil }

func TestBytesOfAResponse(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		read := 0
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			header := http.Header{"Content-Type": {"application/json"}}
			return &http.Response{StatusCode: http.StatusOK, Header: header, Body: spaces{&read}, Request: r}, nil
		})}
		_, err := f.newHost(githost.Options{Client: client}).Get(f.Context(), 1)
		wantError(f.T, err, githost.Protocol, "more than the 1024 KiB")
		if read > 1<<20+1 {
			f.Errorf("%d bytes were read", read)
		}
	})
}

func TestHostThatDoesNotFilter(t *testing.T) {
	f := newFixture(t, githosttest.Gitea)
	branches := func(head, base string) string {
		return fmt.Sprintf(`[{"number":1,"state":"open","head":{"label":%q,"repo_id":1},"base":{"label":%q,"repo_id":1}}]`, head, base)
	}
	for body, found := range map[string]bool{
		branches(branch, githosttest.Base): true, branches(branch, "release"): false, branches("another", githosttest.Base): false,
	} {
		f.Always(githosttest.Respond(http.StatusOK, body))
		if got, err := f.host.Open(t.Context(), branch, githosttest.Base); err != nil || (got != nil) != found {
			t.Errorf("with %s, Open returns %+v, %v", body, got, err)
		}
	}
}

func TestInfinitePages(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		item := `{"number":1,"iid":1,"pullRequestId":1,"created_at":"2026-05-04T12:00:00Z","title":"x"}`
		items := strings.TrimSuffix(strings.Repeat(item+",", 20), ",")
		body := "[" + items + "]"
		if f.Kind() == githosttest.AzureDevOps {
			body = `{"value":[` + items + "]}"
		}
		f.Always(githosttest.Respond(http.StatusOK, body, "Link", `<https://evil.example/next>; rel="next"`))
		_, err := f.host.Open(f.Context(), branch, githosttest.Base)
		wantError(f.T, err, githost.Protocol, "more than the 50 pages")
		if calls := len(f.Calls()); calls != 50 {
			f.Errorf("there were %d calls", calls)
		}
	})
}

func TestRedirectsDoNotGetTheToken(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			f.Errorf("another host gets %s %s with %v", r.Method, r.URL, r.Header)
		}))
		defer evil.Close()
		for _, status := range []int{301, 302, 303, 307, 308} {
			f.Always(githosttest.Respond(status, "", "Location", evil.URL+"/pulls"))
			_, err := f.host.Create(f.Context(), branch, githosttest.Base, f.content())
			wantError(f.T, err, githost.Refused, evil.URL)
		}
	})
}

func TestHostileTexts(t *testing.T) {
	forEachKind(t, func(f *fixture) {
		created := f.create(f.content())
		// A login of a person can contain anything that a hostile host sends.
		f.AddUser("evil\u202e\n" + strings.Repeat("x", 1000))
		f.CloseBy(created.Number, "evil\u202e\n"+strings.Repeat("x", 1000))
		by := f.get(created.Number).EndedBy
		if len(by) > 200 || strings.ContainsAny(by, "\u202e\n") || !strings.HasPrefix(by, "evil") && !strings.HasPrefix(by, "Evil") {
			f.Errorf("it was closed by %q", by)
		}
	})
}

func TestPageAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"javascript:alert(1)": "", "//x/y": "", "https://user:pass@x/": "", "https://x/" + strings.Repeat("a", 3000): "", "": "",
		"https://x/acme/1": "https://x/acme/1",
	} {
		f := newFixture(t, githosttest.GitHub)
		f.Always(githosttest.Respond(http.StatusOK, fmt.Sprintf(`{"number":1,"state":"open","html_url":%q,"head":{"ref":"a"},"base":{"ref":"main"}}`, address)))
		if got := f.get(1).URL; got != want {
			t.Errorf("the page of %.100q is %q, want %q", address, got, want)
		}
	}
}

// transport is a transport of a test.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		host, err := githost.New(githost.Options{
			Kind: githost.GitHub, RepoURL: "https://github.com/acme/clusters", Client: &http.Client{Transport: silent},
			Token: token(githost.Token{Value: "x"}),
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = host.Get(t.Context(), 1)
		wantError(t, err, githost.Unreachable, "has not answered within 30s")
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("the request took %s", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := host.Get(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("the error of a cancelled request is %v", err)
		}
	})
}
