// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// longestMoment bounds the text of a moment, in bytes.
const longestMoment = 128

// moment is what a request names as the time of a state. The zero value is now.
type moment struct {
	text string
	// time is set for a time or a duration.
	time time.Time
	// prefix is the hash of a commit or the beginning of it.
	prefix string
	// before is set for the state before the commit.
	before bool
}

// commitPattern matches the hash of a commit, or at least its first seven digits, as Git abbreviates it.
var commitPattern = regexp.MustCompile(`^[0-9a-f]{7,40}$`)

// parseMoment parses a moment.
func parseMoment(text string, now time.Time) (moment, error) {
	m := moment{text: text}
	if text == "" {
		return m, nil
	}
	if len(text) > longestMoment {
		return m, apierrors.NewBadRequest(fmt.Sprintf("at: longer than %d bytes", longestMoment))
	}
	hash, before := strings.CutSuffix(strings.ToLower(text), "^")
	if commitPattern.MatchString(hash) {
		m.prefix, m.before = hash, before
		return m, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		m.time = at
		return m, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		m.time = now.Add(-ago).Truncate(time.Second)
		return m, nil
	}
	return m, apierrors.NewBadRequest(fmt.Sprintf(
		"at: %q is not a time such as 2006-01-02T15:04:05Z, a duration before now such as 24h, the hash of a commit with at least 7 digits, or "+
			"NAMESPACE/NAME of a Change; a commit or Change can be followed by ^", text))
}

// find returns the index of the commit of a moment in a history, which is not empty.
func (m moment) find(history []gitrepo.PastCommit, branch string, now time.Time) (int, error) {
	if m.prefix == "" {
		return m.findTime(history, branch, now)
	}
	found := -1
	for i := range history {
		if !strings.HasPrefix(history[i].Hash.String(), m.prefix) {
			continue
		}
		if found >= 0 {
			return 0, apierrors.NewBadRequest(fmt.Sprintf("at: several commits of the branch %s begin with %s; give more digits", branch, m.prefix))
		}
		found = i
	}
	switch {
	case found < 0:
		return 0, apierrors.NewBadRequest(fmt.Sprintf(
			"at: the history of the branch %s has no commit %s, or no longer has it; %s", branch, m.prefix, available(history)))
	case m.before && found == 0:
		return 0, apierrors.NewBadRequest(fmt.Sprintf("at: nothing is before the first commit of the branch %s; %s", branch, available(history)))
	case m.before:
		found--
	}
	return found, nil
}

// findTime returns the newest commit that is not after the time. Git has the times of commits in seconds: of the second that a time is
// within, no commit counts, because it can be after the time. Writers choose the times of their commits, and clocks differ: a commit is at
// least as new as those before it, and a time in the future says nothing.
func (m moment) findTime(history []gitrepo.PastCommit, branch string, now time.Time) (int, error) {
	last := m.time
	if second := last.Truncate(time.Second); second.Before(last) {
		last = second.Add(-time.Second)
	}
	found := -1
	var newest time.Time
	for i := range history {
		if at := history[i].Time; at.After(newest) && !at.After(now) {
			newest = at
		}
		if newest.After(last) {
			break
		}
		if !newest.IsZero() || !m.time.Before(now) {
			found = i
		}
	}
	if found >= 0 {
		return found, nil
	}
	return 0, apierrors.NewBadRequest(fmt.Sprintf(
		"at: %s is before the first commit of the branch %s; %s", m.time.UTC().Format(time.RFC3339), branch, available(history)))
}

// available says which states a history has.
func available(history []gitrepo.PastCommit) string {
	oldest, newest := history[0], history[len(history)-1]
	return fmt.Sprintf("available are the states from %s (%s) to %s (%s)", commitText(oldest), oldest.Time.Format(time.RFC3339),
		commitText(newest), newest.Time.Format(time.RFC3339))
}

// abbreviated is the number of digits of a hash in messages.
const abbreviated = 12

func commitText(commit gitrepo.PastCommit) string { return commit.Hash.String()[:abbreviated] }

// state is what a request reads: one commit of the branch.
type state struct {
	snapshot

	// behind is the number of commits since then.
	behind int
}

// errNotOwned is returned if the destination does not own its folder now.
var errNotOwned = errors.New("it has not written its folder yet, or another owner has; its conditions have the reason")

// stateAt returns the state of a source at a moment, in which the destination owned the folder. Its commit is zero if the branch does not
// exist.
func (p *Past) stateAt(ctx context.Context, source *mirror.Source, at moment) (state, error) {
	if at.text == "" {
		return p.ownedTip(ctx, source)
	}
	history, err := p.history(ctx, source)
	if err != nil {
		return state{}, err
	}
	if len(history) == 0 {
		return state{}, apierrors.NewBadRequest(fmt.Sprintf("at: the branch %s has no commits yet", source.Branch))
	}
	found, err := at.find(history, source.Branch, p.config.Clock.Now())
	if err != nil {
		return state{}, err
	}
	s := state{behind: len(history) - 1 - found}
	if s.snapshot, err = p.read(ctx, source, history[found].Hash, s.behind); err != nil {
		return state{}, err
	}
	marker, _ := s.tree.Lookup(source.Marker)
	owned, err := p.owns(ctx, source, gitrepo.Past{Branch: source.Branch, Commit: s.commit.Hash, Behind: s.behind}, marker)
	switch {
	case err != nil:
		return state{}, err
	case owned:
		return s, nil
	}
	_, exists := s.tree.FolderHash(source.Folder)
	return state{}, p.absent(ctx, source, history, found, exists)
}

// ownedTip returns the current state, in which the destination owns the folder if the branch exists.
func (p *Past) ownedTip(ctx context.Context, source *mirror.Source) (state, error) {
	at, err := p.tip(ctx, source)
	if err != nil || at.commit.Hash.IsZero() {
		return at, err
	}
	marker, _ := at.tree.Lookup(source.Marker)
	owned, err := p.owns(ctx, source, gitrepo.Past{Branch: source.Branch, Commit: at.commit.Hash}, marker)
	if err == nil && !owned {
		err = errNotOwned
	}
	return at, err
}

// owns reports whether the destination owns its folder by the marker that a commit has, zero for none.
func (p *Past) owns(ctx context.Context, source *mirror.Source, at gitrepo.Past, marker gitrepo.Hash) (bool, error) {
	if marker.IsZero() {
		return false, nil
	}
	where := gitrepo.BlobsOptions{Past: at}
	read, err := p.contents(ctx, source, where, []gitrepo.Hash{marker}, func(gitrepo.Hash) bool { return false })
	return err == nil && source.Owned(read.Found[marker]), err
}

// stateOf returns the state that a selection is of.
func (p *Past) stateOf(ctx context.Context, source *mirror.Source, selected *selection) (state, error) {
	if selected.page.Commit == "" {
		return p.stateAt(ctx, source, selected.at)
	}
	at, err := p.ownedTip(ctx, source)
	if err != nil || at.commit.Hash.String() == selected.page.Commit {
		return at, err
	}
	at, err = p.stateAt(ctx, source, moment{text: selected.page.Commit, prefix: selected.page.Commit})
	if apierrors.IsBadRequest(err) {
		err = apierrors.NewResourceExpired("continue: the branch no longer has the commit that the pages are of; begin again without the token")
	}
	return at, err
}

// tip returns the current state.
func (p *Past) tip(ctx context.Context, source *mirror.Source) (state, error) {
	tip, err := source.Remote.Tip(ctx, source.Branch)
	if err != nil {
		return state{}, err
	}
	if found, ok := p.trees.Get(folder{branch: branchOf(source), path: source.Folder, commit: tip}); ok && !tip.IsZero() {
		return state{snapshot: found}, nil
	}
	read, err := p.read(ctx, source, gitrepo.Hash{}, 0)
	return state{snapshot: read}, err
}

// searchTimeout bounds the search for the first commit that the destination owned, which only improves a message.
const searchTimeout = 5 * time.Second

// absent returns the error for a commit in which the destination did not own its folder, if it existed. It names the first commit in which
// it did, if that is later and is found in time.
func (p *Past) absent(ctx context.Context, source *mirror.Source, history []gitrepo.PastCommit, at int, existed bool) error {
	what := "the folder of the destination did not exist"
	if existed {
		what = "the destination did not own its folder"
	}
	message := fmt.Sprintf("at: %s in the commit %s of the branch %s (%s)",
		what, commitText(history[at]), source.Branch, history[at].Time.Format(time.RFC3339))
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	if first, err := p.firstOwned(ctx, source, history[at+1:]); err == nil && first != nil {
		message += fmt.Sprintf("; available are the states from %s (%s)", commitText(*first), first.Time.Format(time.RFC3339))
	}
	return apierrors.NewBadRequest(message)
}

// firstOwned returns the first of some commits in which the destination owned its folder, if it did in all later ones; nil if it does not
// in the last.
func (p *Past) firstOwned(ctx context.Context, source *mirror.Source, commits []gitrepo.PastCommit) (*gitrepo.PastCommit, error) {
	has := func(i int) (bool, error) {
		at := gitrepo.Past{Branch: source.Branch, Commit: commits[i].Hash, Behind: len(commits) - 1 - i}
		marker, err := source.Remote.File(ctx, at, source.Marker)
		if err != nil {
			return false, err
		}
		return p.owns(ctx, source, at, marker)
	}
	if len(commits) == 0 {
		return nil, nil
	}
	if exists, err := has(len(commits) - 1); err != nil || !exists {
		return nil, err
	}
	low, high := 0, len(commits)-1
	for low < high {
		middle := (low + high) / 2
		exists, err := has(middle)
		switch {
		case err != nil:
			return nil, err
		case exists:
			high = middle
		default:
			low = middle + 1
		}
	}
	return &commits[high], nil
}
