// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// publish brings the pull request to the state of the branch: it opens one, updates its text, or closes it if there is no difference. It
// returns when to call it again; zero means that only a change of the branch needs it.
func (p *proposer) publish(ctx context.Context, members []member) (time.Time, error) {
	if !p.proposes() {
		return time.Time{}, nil
	}
	m, branch, now := members[0], p.remote.branch, time.Now()
	state := branchState{branch.Tip(), branch.BaseTip(), m.plan.object.Generation}
	switch {
	case now.Before(p.retryAt):
		return p.retryAt, nil
	case state == p.published && p.retryAt.IsZero() && len(p.record.Left) == 0 && m.destination.withheld.isStored():
		return earliest(p.overdueAt(m), p.nextCheck()), nil
	}
	proposed := branch.Proposed(gitrepo.Hash{})
	if err := p.storeWithheld(ctx, m, proposed); err != nil {
		return time.Time{}, err
	}
	changes := p.changesOf(m, proposed)
	if p.record.Open() && len(changes) == 0 && m.destination.seeds.outstanding() { // The comparison may find changes.
		p.setState(m, 0)
		return earliest(p.overdueAt(m), p.nextCheck()), nil
	}
	if p.record.Open() && now.Before(p.updateAt) {
		p.setState(m, len(changes))
		return p.updateAt, nil
	}
	if err := p.serve(ctx, m, changes); err != nil {
		if ok, stored := isStoreError(err); ok {
			return time.Time{}, stored
		}
		p.failed(ctx, m, err)
		return p.retryAt, ctx.Err()
	}
	if p.record.Open() && p.checkAt.IsZero() {
		p.updateAt = time.Now().Add(p.interval) // The host may contradict itself.
		return time.Now(), nil
	}
	if published := (proposal.Hashes{state.tip}); p.record.Open() &&
		(p.record.Changes != int64(len(changes)) || p.record.Host != p.address || !slices.Equal(p.record.Published, published)) {
		next := p.record
		next.Changes, next.Host, next.Published = int64(len(changes)), p.address, published
		if err := p.write(ctx, next); err != nil {
			return time.Time{}, err
		}
	}
	p.published, p.updateAt = state, time.Now().Add(p.interval)
	p.succeeded(m, len(changes))
	return earliest(p.overdueAt(m), p.nextCheck()), nil
}

// nextCheck returns when the host is asked for the pull request again; zero if none is open.
func (p *proposer) nextCheck() time.Time {
	if !p.record.Open() {
		return time.Time{}
	}
	return p.checkAt
}

// storeError is an error of the store, which the worker retries, unlike one of the host.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func isStoreError(err error) (bool, error) {
	stored, ok := err.(storeError) //nolint:errorlint // It is never wrapped.
	return ok, stored.error
}

// overdueAt returns when the open pull request gets too old; zero if it is, or cannot.
func (p *proposer) overdueAt(m member) time.Time {
	delivery := m.plan.object.PullRequest()
	if !p.record.Open() || delivery == nil || delivery.MaxOpenAge == nil {
		return time.Time{}
	}
	if at := p.record.Opened.Add(delivery.MaxOpenAge.Duration); at.After(time.Now()) {
		return at
	}
	return time.Time{}
}

// serve opens, updates or closes the pull request, and closes those of earlier places: first, because one may be of the same branches. If
// that fails for others, it is an error only after the pull request has been served.
func (p *proposer) serve(ctx context.Context, m member, changes []proposal.Change) error {
	delivery := m.plan.object.PullRequest()
	open := p.record.Open()
	done := len(changes) == 0 && (!open || delivery != nil && delivery.CloseWhenEqual != nil && !*delivery.CloseWhenEqual)
	if delivery == nil || done && len(p.record.Left) == 0 {
		return nil
	}
	about := proposal.About{
		Destination: m.destination.key.String(), Cluster: p.cluster(), Folder: m.plan.object.Spec.BaseFolder,
		Title: delivery.Title, Body: delivery.Body,
	}
	content := githost.Content{
		Title: about.TitleText(), Body: about.BodyText(changes), Labels: delivery.Labels, Reviewers: delivery.Reviewers, Draft: delivery.Draft,
	}
	return p.atHost(ctx, func(ctx context.Context, host githost.Host) error {
		if p.isElsewhere() {
			p.checkAt = time.Time{} // The next cycle settles that.
			return nil
		}
		left := p.closeLeft(ctx, m, host)
		switch {
		case done || left != nil && p.record.Left[0] == proposal.Branches{Head: p.key.branch, Base: p.key.base}:
			return left
		case !open:
			return cmp.Or(p.create(ctx, m, host, content), left)
		}
		return cmp.Or(p.refresh(ctx, m, host, content, len(changes) == 0), left)
	})
}

// refresh updates the open pull request, or closes it if there is no difference.
func (p *proposer) refresh(ctx context.Context, m member, host githost.Host, content githost.Content, isEqual bool) error {
	current, err := host.Get(ctx, p.record.Number)
	switch {
	case err != nil:
		return err
	case current.State != githost.Open:
		p.checkAt = time.Time{} // The next cycle settles its end.
		return nil
	case isEqual:
		return p.closeEqual(ctx, m, host)
	}
	return p.update(ctx, host, current, content)
}

// create opens a pull request. That it begins to, and with which commit, is stored first.
func (p *proposer) create(ctx context.Context, m member, host githost.Host, content githost.Content) error {
	if published := (proposal.Hashes{p.remote.branch.Tip()}); p.record.Creating.IsZero() || !slices.Equal(p.record.Published, published) {
		next := p.record
		next.Published = published
		if next.Creating.IsZero() {
			next.Creating = time.Now()
		}
		if err := p.write(ctx, next); err != nil {
			return storeError{err}
		}
	}
	failpoint.Reach("proposal-noted")
	created, err := host.Create(ctx, p.key.branch, p.key.base, content)
	if created == nil {
		return err
	}
	failpoint.Reach("proposal-created")
	if stored := p.opened(ctx, created); stored != nil {
		return storeError{stored}
	}
	failpoint.Reach("proposal-recorded")
	p.checkAt = time.Now().Add(p.poll)
	p.event(m.plan.object, corev1.EventTypeNormal, reasonProposalOpened, fmt.Sprintf("Opened pull request #%d: %s", created.Number, created.URL))
	return err
}

// update writes the text of the open pull request.
func (p *proposer) update(ctx context.Context, host githost.Host, current *githost.PullRequest, content githost.Content) error {
	if p.record.Closing {
		next := p.record
		next.Closing = false
		if err := p.write(ctx, next); err != nil {
			return storeError{err}
		}
	}
	content.Draft = current.Draft // Reviewers decide when it is ready.
	_, err := host.Update(ctx, current, content)
	return err
}

// closeEqual closes the pull request, which has no difference to its base any more.
func (p *proposer) closeEqual(ctx context.Context, m member, host githost.Host) error {
	next := p.record
	next.Closing = true
	if err := p.write(ctx, next); err != nil {
		return storeError{err}
	}
	closed, err := closeWith(ctx, host, p.record.Number, "equal", proposal.EqualComment)
	if err != nil {
		return err
	}
	if closed.State == githost.Merged {
		p.checkAt = time.Time{} // The next cycle settles that.
		return nil
	}
	next.State, next.Closing, next.Changes, next.Ended = v1alpha1.ProposalEqual, false, 0, time.Now()
	next.Published, next.Since = nil, p.remote.branch.Tip()
	if err := p.write(ctx, next); err != nil {
		return storeError{err}
	}
	p.remote.since = next.Since
	p.remote.branch.StartAnew()
	p.recordEvent(m, next)
	return nil
}

// closeLeft closes the pull requests of earlier places.
func (p *proposer) closeLeft(ctx context.Context, m member, host githost.Host) error {
	for len(p.record.Left) > 0 {
		found, err := host.Open(ctx, p.record.Left[0].Head, p.record.Left[0].Base)
		if err != nil {
			return err
		}
		if found != nil {
			if _, err := closeWith(ctx, host, found.Number, "left", proposal.LeftComment); err != nil {
				return err
			}
			p.event(m.plan.object, corev1.EventTypeNormal, reasonProposalClosed, fmt.Sprintf(
				"Pull request #%d was closed, because the destination has another branch, base or folder now", found.Number))
		}
		next := p.record
		next.Left = next.Left[1:]
		if found != nil {
			next.Earlier = max(next.Earlier, found.Number)
		}
		if err := p.write(ctx, next); err != nil {
			return storeError{err}
		}
	}
	return nil
}

// closeWith closes a pull request with a comment, unless it has ended already. A host that refuses the comment does not keep it open.
func closeWith(ctx context.Context, host githost.Host, number int64, reason, comment string) (*githost.PullRequest, error) {
	err := host.Comment(ctx, number, fmt.Sprintf("%s-%d", reason, number), comment)
	var refusal *githost.Error
	switch {
	case errors.As(err, &refusal) && refusal.Kind != githost.Unreachable && refusal.Kind != githost.RateLimited:
		klog.FromContext(ctx).Error(err, "Failed to comment on the pull request that is closed", "number", number)
	case err != nil:
		return nil, err
	}
	failpoint.Reach("proposal-commented")
	closed, err := host.Close(ctx, number)
	if err == nil && closed.State == githost.Open {
		err = &githost.Error{Kind: githost.Protocol, Op: "close the pull request", Message: "the host leaves it open"}
	}
	failpoint.Reach("proposal-closed")
	return closed, err
}

// changesOf returns the objects in which the branch differs from its base, and other files but the marker.
func (p *proposer) changesOf(m member, proposed []gitrepo.ProposedFile) []proposal.Change {
	var changes []proposal.Change
	for _, file := range proposed {
		below := m.plan.below(file.Path)
		if below == markerPath {
			continue
		}
		change := proposal.Change{
			Operation: "changed", Object: below, Author: file.Author, Time: file.Time, Commit: file.Commit.String()[:12],
			URL: commitURL(m.plan, file.Commit),
		}
		if managed, ok := parseManaged(below); ok {
			change.Object = managed.object.String()
		}
		switch {
		case file.Base.IsZero():
			change.Operation = "added"
		case file.Hash.IsZero():
			change.Operation = "removed"
		}
		changes = append(changes, change)
	}
	return changes
}
