// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
)

var (
	kinds   = []githost.Kind{githost.GitHub, githost.GitLab, githost.Gitea, githost.AzureDevOps}
	errSent = errors.New("the request was sent")
)

// FuzzAddress shows that no URL of a repository leads a token to a path that is not below the API.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{
		"https://github.com/acme/clusters.git", "git@ssh.dev.azure.com:v3/a/b%20c/d", "https://x.example/a/%2e%2e/b", "ssh://u@h:22/a/b",
		"https://u:p@tfs.example/t/Default%20Collection/p/_git/r", "https://a.visualstudio.com/p/_git/r", "http://[::1]:80/a/b?c#d",
	} {
		for kind := range kinds {
			f.Add(address, uint8(kind))
		}
	}
	f.Fuzz(func(t *testing.T, address string, kind uint8) {
		_, _ = githost.KindOf(address) // It must not panic.
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			for segment := range strings.SplitSeq(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/") {
				if segment == "" || segment == "." || segment == ".." {
					t.Errorf("%q leads to %s", address, r.URL)
				}
			}
			if r.URL.User != nil || r.URL.Fragment != "" || r.URL.Scheme != "https" && r.URL.Scheme != "http" {
				t.Errorf("%q leads to %s", address, r.URL)
			}
			return nil, errSent
		})}
		host, err := githost.New(githost.Options{
			Kind: kinds[int(kind)%len(kinds)], RepoURL: address, Client: client, Token: token(githost.Token{Value: "x"}),
		})
		if err != nil {
			return
		}
		if _, err := host.Get(t.Context(), 1); err == nil {
			t.Error("a request without a response has no error")
		}
	})
}

// FuzzResponse shows that no response of a host leads to a panic, or to a message that is not printable.
func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		`{"message":"Validation Failed","errors":[{"field":"head","code":"invalid"},"x"]}`,
		`{"message":{"title":["is too long"],"a":{"b":{"c":["d"]}}}}`, `{"number":1,"labels":null,"closed_at":"0000-00-00"}`,
		`[{"number":1,"state":"open","head":{"label":"a","repo_id":1},"base":{"label":"main","repo_id":1},"labels":[null]}]`,
	} {
		for _, status := range []uint16{200, 301, 403, 422, 429} {
			f.Add(status, body, "0")
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, body, header string) {
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			headers := http.Header{}
			headers.Set("Content-Type", "application/json")
			for _, name := range []string{"Retry-After", "X-Ratelimit-Reset", "Link", "X-Accepted-Github-Permissions", "Location"} {
				headers.Set(name, header)
			}
			return &http.Response{
				StatusCode: int(status), Header: headers, Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})}
		for _, kind := range kinds {
			host, err := githost.New(githost.Options{
				Kind: kind, RepoURL: "https://x.example/acme/_git/clusters", APIURL: "https://x.example/api", Client: client,
				Token: token(githost.Token{Value: "s3cret-of-the-bot"}),
			})
			if err != nil {
				t.Fatal(err)
			}
			_, openErr := host.Open(t.Context(), "a", "main")
			_, getErr := host.Get(t.Context(), 1)
			_, createErr := host.Create(t.Context(), "a", "main", githost.Content{Title: "x", Labels: []string{"y"}, Reviewers: []string{"z"}})
			for _, err := range []error{openErr, getErr, createErr, host.Comment(t.Context(), 1, "a", "b")} {
				if err != nil && (!utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x00\x1b\u202e") ||
					strings.Contains(err.Error(), "s3cret-of-the-bot")) {
					t.Errorf("the error is %q", err)
				}
			}
		}
	})
}
