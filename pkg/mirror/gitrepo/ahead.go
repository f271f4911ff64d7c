// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

const (
	// maxAhead bounds how many commits a branch can be ahead of its base. Beyond it, its history is not related to that of the
	// base, or nobody reviews it.
	maxAhead = 50_000
	// fileChangeSize is about what a change of a file takes in memory beside its path, in bytes.
	fileChangeSize = 64
)

// aheadCommit is a commit that the base lacks.
type aheadCommit struct {
	hash Hash
	// object is the commit object.
	object []byte
	// files are the files in managed folders that it changes.
	files []fileChange
}

// fileChange is a file's new blob; zero if it was removed.
type fileChange struct {
	path string
	hash Hash
}

// readAhead reads the commits of the branch that the base lacks, with the files that they change.
func (b *Branch) readAhead(ctx context.Context, budget *budget) error {
	found, err := b.fetchAhead(ctx, budget, want{have: b.base.tip, limit: maxRefreshBytes})
	if err != nil {
		return err
	}
	commits, fork, err := b.chainOf(found)
	if err != nil {
		return err
	}
	if len(commits) == 0 {
		b.startAnew()
		return nil
	}
	ahead, err := b.filesOf(ctx, budget, commits, fork, found)
	if errors.Is(err, errIncomplete) { // The server omits the trees of the base's past.
		if found, err = b.fetchAhead(ctx, budget, want{depth: len(commits) + 1}); err == nil {
			ahead, err = b.filesOf(ctx, budget, commits, fork, found)
		}
	}
	if err != nil {
		return err
	}
	b.base.ahead, b.base.fork = ahead, fork
	return nil
}

// fetchAhead fetches commits and trees of the branch.
func (b *Branch) fetchAhead(ctx context.Context, budget *budget, wanted want) (objects, error) {
	collector := newTreeCollector(false)
	wanted.filter, wanted.visitor = packp.FilterBlobNone(), collector
	tip, err := b.remote.fetchTip(ctx, budget, string(b.reference), func(tip Hash) (want, bool) { return wanted, tip == b.remoteTip })
	if err == nil && tip != b.remoteTip {
		err = ErrMoved
	}
	return collector.found, err
}

// chainOf returns the commits of the branch that the base lacks, oldest first, from what a server has that knows the base: up to one that
// it does not send because the base has it, or the one at which what is proposed begins. fork is that one.
func (b *Branch) chainOf(found objects) (commits []Hash, fork Hash, err error) {
	at := b.remoteTip
	for at != b.base.since && !at.IsZero() {
		content, sent := found.commits[at]
		if !sent || at == b.base.tip {
			break
		}
		if len(commits) == maxAhead {
			return nil, Hash{}, tooLarge("the branch has more than %d commits that branch %s lacks", maxAhead, b.base.name)
		}
		links, err := decodeCommit(content)
		if err != nil {
			return nil, Hash{}, refuse(Protocol, "%v", err)
		}
		commits = append(commits, at)
		at = links.parent
	}
	slices.Reverse(commits)
	return commits, at, nil
}

// filesOf returns commits with the files that each changes.
func (b *Branch) filesOf(ctx context.Context, budget *budget, commits []Hash, fork Hash, found objects) ([]aheadCommit, error) {
	loader := treeLoader{fetched: found, folders: b.folders, known: map[Hash]*directory{}, budget: budget}
	loader.index(b.base.root)
	loader.index(b.pushed.root)
	before, err := b.rootOf(ctx, &loader, fork)
	if err != nil {
		return nil, err
	}
	ahead := make([]aheadCommit, 0, len(commits))
	for _, hash := range commits {
		held := budget.held
		after, err := b.rootOf(ctx, &loader, hash)
		if err != nil {
			return nil, err
		}
		commit := aheadCommit{hash: hash, object: found.commits[hash]}
		if !isMerge(commit.object) { // What it merges is of other branches, such as the base.
			diffDirectories(before, after, "", func(path string, hash Hash) {
				commit.files = append(commit.files, fileChange{path, hash})
			})
		}
		budget.release(budget.held - held) // Only the files are kept.
		for _, file := range commit.files {
			if err := budget.hold(ctx, int64(len(file.path))+fileChangeSize); err != nil {
				return nil, err
			}
		}
		ahead = append(ahead, commit)
		before = after
	}
	return ahead, nil
}

// rootOf returns the root directory of a commit, or an empty one for the zero Hash.
func (b *Branch) rootOf(ctx context.Context, loader *treeLoader, commit Hash) (*directory, error) {
	switch {
	case commit.IsZero():
		return emptyDirectory(), nil
	case commit == b.base.tip:
		return b.base.root, nil
	}
	content, sent := loader.fetched.commits[commit]
	if !sent {
		return nil, errIncomplete
	}
	links, err := decodeCommit(content)
	if err != nil {
		return nil, refuse(Protocol, "%v", err)
	}
	return loader.load(ctx, links.tree, "", nil, 0)
}

// diffDirectories calls visit for every regular file that differs below two directories, with its blob in after; zero if it is not
// there. Directories that are not held in memory are skipped. Either may be nil.
func diffDirectories(before, after *directory, prefix string, visit func(path string, hash Hash)) {
	if before == nil {
		before = emptyDirectory()
	}
	if after == nil {
		after = emptyDirectory()
	}
	if before == after || before.hash == after.hash && !before.hash.IsZero() {
		return
	}
	old, now := before.entries, after.entries
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(now) == 0 || len(old) > 0 && compareEntries(&old[0], &now[0]) < 0:
			diffEntries(&old[0], nil, prefix, visit)
			old = old[1:]
		case len(old) == 0 || compareEntries(&old[0], &now[0]) > 0:
			diffEntries(nil, &now[0], prefix, visit)
			now = now[1:]
		default:
			diffEntries(&old[0], &now[0], prefix, visit)
			old, now = old[1:], now[1:]
		}
	}
}

// diffEntries compares two entries of the same name; one may be nil.
func diffEntries(old, now *entry, prefix string, visit func(path string, hash Hash)) {
	var before, after *directory
	name, wasFile := "", false
	if old != nil {
		name, before, wasFile = old.name, old.directory, old.isRegularFile()
	}
	if now != nil {
		name, after = now.name, now.directory
	}
	switch {
	case now != nil && now.isRegularFile():
		if !wasFile || old.hash != now.hash {
			visit(prefix+name, now.hash)
		}
	case wasFile:
		visit(prefix+name, Hash{})
	}
	if before != nil || after != nil {
		diffDirectories(before, after, prefix+name+"/", visit)
	}
}

// newStagedCommit returns a commit with the files that it changes.
func newStagedCommit(before, after state, object []byte, sign func([]byte) (string, error)) stagedCommit {
	commit := stagedCommit{aheadCommit{hash: after.tip, object: object}, sign}
	diffDirectories(before.root, after.root, "", func(path string, hash Hash) { commit.files = append(commit.files, fileChange{path, hash}) })
	return commit
}

// isMerge reports whether a commit object has several parents.
func isMerge(object []byte) bool {
	header, _, _ := bytes.Cut(object, []byte("\n\n"))
	return bytes.Count(header, []byte("\nparent ")) > 1
}

// pushedAhead records that the remote has accepted commits.
func (b *Branch) pushedAhead(commits []stagedCommit) {
	if b.base == nil {
		return
	}
	for _, commit := range commits {
		b.base.ahead = append(b.base.ahead, commit.aheadCommit)
	}
}

// AheadCommit is a commit of a branch that its base lacks.
type AheadCommit struct {
	Hash Hash
	// Time is the committer time, to the second.
	Time time.Time
	// Message is the whole message.
	Message string
}

// Ahead returns the commits that the base lacks, oldest first, without staged ones.
func (b *Branch) Ahead() []AheadCommit {
	if b.base == nil {
		return nil
	}
	commits := make([]AheadCommit, len(b.base.ahead))
	for i, commit := range b.base.ahead {
		_, message, _ := bytes.Cut(commit.object, []byte("\n\n"))
		commits[i] = AheadCommit{Hash: commit.hash, Time: committerTime(commit.object), Message: string(message)}
	}
	return commits
}

// ProposedFile is a file in which a branch differs from its base because of its commits.
type ProposedFile struct {
	Path string
	// Base and Hash are the blobs in the base and in the branch; zero if the file does not exist there.
	Base, Hash Hash
	// Author and Time are those of the last commit that changes the file; Commit is that one.
	Author string
	Time   time.Time
	Commit Hash
}

// Proposed returns the files in which the branch differs from its base because of the commits up to and including one, or of all if it is
// zero, by path.
func (b *Branch) Proposed(through Hash) []ProposedFile {
	if b.base == nil {
		return nil
	}
	last := map[string]ProposedFile{}
	for _, commit := range b.base.ahead {
		author, at := authorOf(commit.object)
		for _, file := range commit.files {
			last[file.path] = ProposedFile{Path: file.path, Hash: file.hash, Author: author, Time: at, Commit: commit.hash}
		}
		if commit.hash == through {
			break
		}
	}
	tree := Tree{root: b.base.root}
	var files []ProposedFile
	for _, path := range slices.Sorted(maps.Keys(last)) {
		file := last[path]
		file.Base, _ = tree.Lookup(file.Path)
		if file.Base != file.Hash {
			files = append(files, file)
		}
	}
	return files
}

// authorOf returns the name and the time of the author of a commit object.
func authorOf(object []byte) (name string, at time.Time) {
	header, _, _ := bytes.Cut(object, []byte("\n\n"))
	_, line, _ := bytes.Cut(header, []byte("\nauthor "))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	text, _, _ := bytes.Cut(line, []byte(" <"))
	return string(bytes.ToValidUTF8(text, []byte("?"))), timeOf(line)
}
