// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	// maxPerson bounds the login of a user, and maxURL the address of a page, in bytes.
	maxPerson = 128
	maxURL    = 2048
)

// setDraft implements api. The REST API cannot change whether a pull request is a draft.
func (g *github) setDraft(ctx context.Context, op string, current *PullRequest, isDraft bool) error {
	mutation := "markPullRequestReadyForReview"
	if isDraft {
		mutation = "convertPullRequestToDraft"
	}
	var received struct {
		Errors []struct{ Message, Type string } `json:"errors"`
	}
	_, err := g.do(ctx, call{
		op: op, method: http.MethodPost, url: g.graphQL(), out: &received,
		in: struct {
			Query     string            `json:"query"`
			Variables map[string]string `json:"variables"`
		}{"mutation($id: ID!) { " + mutation + "(input: {pullRequestId: $id}) { clientMutationId } }", map[string]string{"id": current.node}},
		verify: func() *Error {
			if len(received.Errors) == 0 {
				return nil
			}
			return graphQLError(received.Errors[0].Type, received.Errors[0].Message)
		},
	})
	return err
}

// graphQL returns the address of the GraphQL API, which GitHub Enterprise has beside the REST API.
func (g *github) graphQL() *url.URL {
	address := *g.base
	if path, ok := strings.CutSuffix(address.Path, "/v3"); ok {
		address.Path = path
	}
	address.Path = strings.TrimSuffix(address.Path, "/") + "/graphql"
	return &address
}

// graphQLError returns the error of a request that failed with a status of success.
func graphQLError(kind, message string) *Error {
	failed := &Error{Kind: Refused, Message: "GitHub does not change whether the pull request is a draft: " + message}
	switch kind {
	case "RATE_LIMITED":
		failed.Kind, failed.RetryAfter = RateLimited, defaultWait
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		failed.Kind = Unauthorized
	case "NOT_FOUND":
		failed.Kind = NotFound
	}
	return failed
}

// person returns a login for display.
func person(login string) string { return truncate(printable.Line(login), maxPerson) }

// pageURL returns the address of a page if it is one that a browser may open.
func pageURL(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || len(address) > maxURL || parsed.Host == "" || parsed.User != nil ||
		parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	return parsed.String()
}
