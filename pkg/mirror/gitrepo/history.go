// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// MaxHistory is the number of commits, those of merged branches included, up to which Remote.History reads a branch.
const MaxHistory = 200_000

// PastCommit is a commit of the first-parent history of a branch.
type PastCommit struct {
	Hash Hash
	// Parent is the first parent; zero for a root commit.
	Parent Hash
	// Time is the committer time, and Authored the author time, to the second.
	Time, Authored time.Time
}

// History returns the first-parent history of a branch, oldest first; nil if the branch does not exist. Only commits are read, if
// the server supports filters. known is the result of an earlier call, or nil: only commits behind its last are fetched, and it is
// returned itself if the branch has not moved. A branch of more than MaxHistory commits is an error of the kind TooLarge.
func (r *Remote) History(ctx context.Context, branch string, known []PastCommit) ([]PastCommit, error) {
	const op = "read the history of the branch"
	reference, err := referenceOf(branch, op)
	if err != nil {
		return nil, err
	}
	ctx, budget := r.begin(ctx)
	defer budget.end()
	history, err := r.history(ctx, budget, reference, known)
	if errors.Is(err, errIncomplete) && len(known) > 0 { // The branch no longer contains the last known commit.
		budget.release(budget.held)
		history, err = r.history(ctx, budget, reference, nil)
	}
	return history, r.failure(ctx, op, err)
}

// referenceOf returns the full name of a branch.
func referenceOf(branch, op string) (plumbing.ReferenceName, error) {
	reference := plumbing.NewBranchReferenceName(branch)
	if err := reference.Validate(); err != nil || branch == "" {
		return "", &Error{Kind: Invalid, Op: op, Message: "the branch name " + branch + " is not valid"}
	}
	return reference, nil
}

func (r *Remote) history(
	ctx context.Context, budget *budget, reference plumbing.ReferenceName, known []PastCommit,
) ([]PastCommit, error) {
	var have Hash
	if len(known) > 0 {
		have = known[len(known)-1].Hash
	}
	collector := newTreeCollector(true)
	tip, err := r.fetchTip(ctx, budget, string(reference), func(tip Hash) (want, bool) {
		return want{have: have, filter: packp.FilterTreeDepth(0), visitor: collector}, tip != have
	})
	switch {
	case err != nil:
		return nil, err
	case tip.IsZero():
		return nil, nil
	case tip == have:
		return known, nil
	case len(collector.found.commits) > MaxHistory:
		return nil, tooLarge("the branch has more than %d commits", MaxHistory)
	}
	return chain(tip, collector.found.commits, known)
}

// chain returns the first-parent history of a tip, oldest first, from its commits that are not known, and the known ones.
func chain(tip Hash, commits map[Hash][]byte, known []PastCommit) ([]PastCommit, error) {
	var added []PastCommit
	for at := tip; !at.IsZero(); {
		if last := len(known) - 1; last >= 0 && at == known[last].Hash {
			slices.Reverse(added)
			return slices.Concat(known, added), nil
		}
		content, found := commits[at]
		if !found || len(added) > len(commits) {
			return nil, errIncomplete
		}
		commit, err := decodePast(at, content)
		if err != nil {
			return nil, err
		}
		added = append(added, commit)
		at = commit.Parent
	}
	slices.Reverse(added)
	return added, nil
}

// decodePast parses a commit object.
func decodePast(hash Hash, content []byte) (PastCommit, error) {
	links, err := decodeCommit(content)
	if err != nil {
		return PastCommit{}, refuse(Protocol, "%v", err)
	}
	_, authored := authorOf(content)
	return PastCommit{Hash: hash, Parent: links.parent, Time: committerTime(content), Authored: authored}, nil
}

// committerTime returns the time of the committer, which is at the end of the line after the address. It is 1970 for a commit whose
// line has another form, as Git shows it.
func committerTime(content []byte) time.Time {
	header, _, _ := bytes.Cut(content, []byte("\n\n"))
	_, line, _ := bytes.Cut(header, []byte("\ncommitter "))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return timeOf(line)
}

// timeOf returns the time at the end of the line of an author or a committer.
func timeOf(line []byte) time.Time {
	_, stamp, _ := bytes.Cut(line, []byte("> "))
	seconds, _, _ := bytes.Cut(stamp, []byte(" "))
	at, err := strconv.ParseInt(string(seconds), 10, 64)
	if err != nil || at < 0 || at > maxSeconds {
		at = 0
	}
	return time.Unix(at, 0).UTC()
}

// maxSeconds is the last second of the year 9999, the latest that RFC 3339 can write.
const maxSeconds = 253402300799

// Tip returns the tip of a branch; zero if the branch does not exist.
func (r *Remote) Tip(ctx context.Context, branch string) (Hash, error) {
	const op = "read the tip of the branch"
	reference, err := referenceOf(branch, op)
	if err != nil {
		return Hash{}, err
	}
	ctx, budget := r.begin(ctx)
	defer budget.end()
	tip, err := r.fetchTip(ctx, budget, string(reference), func(Hash) (want, bool) { return want{}, false })
	return tip, r.failure(ctx, op, err)
}
