// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package githosttest serves the APIs for pull requests of GitHub, GitLab, Gitea and Azure DevOps, over one model of a repository.
//
// Routes, statuses, names of fields, headers of pages and errors follow the published schemas of the hosts and, for Gitea, its source. A
// request with a field or a parameter that the schema does not have fails the test. A test acts as the users who review with Merge,
// CloseBy, Review and others, and makes the host fail with FailAt, Always, Hang and RateLimit.
package githosttest

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/utils/clock"
)

// Kind is the API that a Server has.
type Kind string

// The kinds of APIs, with the names that the product gives them.
const (
	GitHub      Kind = "GitHub"
	GitLab      Kind = "GitLab"
	Gitea       Kind = "Gitea"
	AzureDevOps Kind = "AzureDevOps"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{GitHub, GitLab, Gitea, AzureDevOps} }

const (
	// Token is the credential that the servers accept. It belongs to the user Bot.
	Token = "token-of-the-bot"
	// Bot is the user who makes the requests.
	Bot = "slipstream-bot"
	// Base is a branch that exists from the start.
	Base = "main"

	owner = "acme"
	name  = "clusters"
	// azureProject has a character that URLs escape.
	azureProject = "Team One"
	// gitlabProject is in a subgroup.
	gitlabProject = "acme/platform/clusters"
)

// Server is the API of one repository.
type Server struct {
	// RepoURL is the URL of the repository, and APIURL where the API begins.
	RepoURL, APIURL string
	// Team is a team that can review, written as organization/team. GitLab and Azure DevOps have none.
	Team string

	t      testing.TB
	kind   Kind
	clock  clock.PassiveClock
	server *httptest.Server
	// git serves Git's protocol, nil if there is no repository.
	git http.Handler

	mu sync.Mutex
	// resolve returns the commit of a branch.
	resolve  func(branch string) (sha string, exists bool)
	branches map[string]string
	pulls    []*pull
	users    []string
	// labels are those of the repository, for hosts that must create them first.
	labels []string
	faults faults
	calls  []string
}

// Option changes a Server.
type Option func(*Server)

// WithClock sets the time of creation, merge and comments, and that of rate limits.
func WithClock(c clock.PassiveClock) Option { return func(s *Server) { s.clock = c } }

// WithBranches makes the branches those of a Git repository, instead of those of Push.
func WithBranches(resolve func(branch string) (sha string, exists bool)) Option {
	return func(s *Server) { s.resolve = resolve }
}

// WithGit serves the requests of Git's protocol, so that RepoURL is that of a repository. The path of a request begins with the path of
// RepoURL.
func WithGit(handler http.Handler) Option { return func(s *Server) { s.git = handler } }

// New starts the API of a repository that has the branch Base. It ends with the test.
func New(t testing.TB, kind Kind, options ...Option) *Server {
	s := &Server{
		t: t, kind: kind, clock: clock.RealClock{}, users: []string{Bot, "alice", "bob", "carol"},
		branches: map[string]string{Base: "ba5e000000000000000000000000000000000000"},
	}
	s.resolve = func(branch string) (string, bool) {
		sha, exists := s.branches[branch]
		return sha, exists
	}
	for _, option := range options {
		option(s)
	}
	mux := http.NewServeMux()
	repository, api := "", ""
	switch kind {
	case GitHub:
		repository, api, s.Team = "/"+owner+"/"+name+".git", "/api/v3", owner+"/reviewers"
		(&github{s}).routes(mux)
	case GitLab:
		repository, api = "/"+gitlabProject+".git", "/api/v4"
		(&gitlab{s}).routes(mux)
	case Gitea:
		repository, api, s.Team = "/"+owner+"/"+name+".git", "/api/v1", owner+"/reviewers"
		(&gitea{s}).routes(mux)
	case AzureDevOps:
		repository, api = "/"+owner+"/Team%20One/_git/"+name, "/"+owner
		(&azure{s}).routes(mux)
	default:
		t.Fatalf("there is no API of the kind %q", kind)
	}
	s.server = httptest.NewServer(s.withFaults(mux))
	s.RepoURL, s.APIURL = s.server.URL+repository, s.server.URL+api
	t.Cleanup(s.server.Close)
	return s
}

// Client returns a client for the server.
func (s *Server) Client() *http.Client { return s.server.Client() }

// Kind returns the kind of the API.
func (s *Server) Kind() Kind { return s.kind }

// Calls returns the requests that were made, as method and path.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}
