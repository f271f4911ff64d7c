// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githosttest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a pull request.
type State string

// The states of pull requests.
const (
	Open   State = "Open"
	Merged State = "Merged"
	Closed State = "Closed"
)

// PullRequest is a pull request of a Server.
type PullRequest struct {
	Number                     int64
	Title, Body, Head, Base    string
	HeadSHA                    string
	State                      State
	Draft                      bool
	Created, Updated, Ended    time.Time
	EndedBy                    string
	Labels, Reviewers, Reviews []string
	Comments                   []string
	MergeCommit                string
	// FromFork says that the head is in a fork, which has the same owner.
	FromFork bool
}

// pull is a pull request of the model. Hosts without a field for drafts derive Draft from the title.
type pull struct {
	PullRequest
	deleted bool
	// commentTimes are when the comments were posted.
	commentTimes []time.Time
}

// now returns the time that is stored: full seconds.
func (s *Server) now() time.Time { return s.clock.Now().UTC().Truncate(time.Second) }

// PullRequests returns all pull requests, the oldest first.
func (s *Server) PullRequests() []PullRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []PullRequest
	for _, p := range s.pulls {
		if !p.deleted {
			copied := p.PullRequest
			copied.Labels, copied.Reviewers = slices.Clone(p.Labels), slices.Clone(p.Reviewers)
			copied.Comments, copied.Reviews = slices.Clone(p.Comments), slices.Clone(p.Reviews)
			all = append(all, copied)
		}
	}
	return all
}

// Push sets the commit of a branch.
func (s *Server) Push(branch, sha string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.branches[branch] = sha
}

// DeleteBranch deletes a branch.
func (s *Server) DeleteBranch(branch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.branches, branch)
}

// Add adds a pull request as its author would, and returns its number.
func (s *Server) Add(added PullRequest) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(added).Number
}

func (s *Server) add(added PullRequest) *pull {
	added.Number = int64(len(s.pulls) + 1)
	if added.State == "" {
		added.State = Open
	}
	if added.Created.IsZero() {
		added.Created = s.now()
	}
	added.Updated = added.Created
	p := &pull{PullRequest: added}
	s.pulls = append(s.pulls, p)
	return p
}

// change changes a pull request as a person would.
func (s *Server) change(number int64, change func(*pull)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.find(number)
	if p == nil {
		s.t.Fatalf("there is no pull request %d", number)
	}
	change(p)
}

// Merge merges a pull request.
func (s *Server) Merge(number int64, by string) {
	s.t.Helper()
	s.change(number, func(p *pull) {
		s.refresh(p)
		p.State, p.Ended, p.EndedBy, p.MergeCommit = Merged, s.now(), by, fmt.Sprintf("%040x", number)
	})
}

// CloseBy closes a pull request without merging it.
func (s *Server) CloseBy(number int64, by string) {
	s.t.Helper()
	s.change(number, func(p *pull) { s.end(p, by) })
}

// end closes a pull request.
func (s *Server) end(p *pull, by string) {
	s.refresh(p)
	if p.State == Open {
		p.State, p.Ended, p.EndedBy = Closed, s.now(), by
	}
}

// Delete deletes a pull request.
func (s *Server) Delete(number int64) {
	s.t.Helper()
	s.change(number, func(p *pull) { p.deleted = true })
}

// Edit changes fields of a pull request.
func (s *Server) Edit(number int64, edit func(*PullRequest)) {
	s.t.Helper()
	s.change(number, func(p *pull) { edit(&p.PullRequest) })
}

// AddUser adds a user.
func (s *Server) AddUser(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = append(s.users, login)
}

// Review reviews a pull request. GitHub and Gitea then no longer list the reviewer as requested.
func (s *Server) Review(number int64, by string) {
	s.t.Helper()
	s.change(number, func(p *pull) {
		p.Reviews = append(p.Reviews, by)
		if s.kind == GitHub || s.kind == Gitea {
			p.Reviewers = slices.DeleteFunc(p.Reviewers, func(reviewer string) bool { return reviewer == by })
		}
	})
}

// CommentBy posts a comment.
func (s *Server) CommentBy(number int64, text string) {
	s.t.Helper()
	s.change(number, func(p *pull) { s.comment(p, text) })
}

func (s *Server) comment(p *pull, text string) {
	p.Comments, p.commentTimes = append(p.Comments, text), append(p.commentTimes, s.now())
}

// Reviewer returns how a request names a user as a reviewer.
func (s *Server) Reviewer(user string) string {
	if s.kind == AzureDevOps {
		return azureID(s.userID(user))
	}
	return user
}

// userID returns the identifier of a user, 0 if there is none.
func (s *Server) userID(user string) int64 {
	return int64(slices.IndexFunc(s.users, func(known string) bool { return strings.EqualFold(known, user) }) + 1)
}

// find returns a pull request with its present commit, nil if there is none.
func (s *Server) find(number int64) *pull {
	if number < 1 || number > int64(len(s.pulls)) || s.pulls[number-1].deleted {
		return nil
	}
	p := s.pulls[number-1]
	s.refresh(p)
	return p
}

// refresh reads the head of an open pull request.
func (s *Server) refresh(p *pull) {
	if sha, exists := s.resolve(p.Head); exists && p.State == Open && !p.FromFork && sha != p.HeadSHA {
		p.HeadSHA, p.Updated = sha, s.now()
	}
}

// selected returns the pull requests that a list contains, the newest first.
func (s *Server) selected(matches func(*pull) bool) []*pull {
	var found []*pull
	for i := len(s.pulls) - 1; i >= 0; i-- {
		if p := s.find(s.pulls[i].Number); p != nil && matches(p) {
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(a, b *pull) int { return b.Created.Compare(a.Created) })
	return found
}

// existing returns the open pull request with the same branches, nil if there is none.
func (s *Server) existing(head, base string) *pull {
	for _, p := range s.pulls {
		if !p.deleted && p.State == Open && !p.FromFork && p.Head == head && p.Base == base {
			return p
		}
	}
	return nil
}

// label adds labels that a pull request does not have.
func (p *pull) label(labels ...string) {
	for _, label := range labels {
		if !slices.ContainsFunc(p.Labels, func(other string) bool { return strings.EqualFold(other, label) }) {
			p.Labels = append(p.Labels, label)
		}
	}
}

// request adds reviewers that a pull request does not have.
func (p *pull) request(reviewers ...string) {
	for _, reviewer := range reviewers {
		if !slices.Contains(p.Reviewers, reviewer) {
			p.Reviewers = append(p.Reviewers, reviewer)
		}
	}
}
