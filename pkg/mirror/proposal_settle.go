// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/store/failpoint"
)

// settle brings the branch to its base after the pull request has ended, and when the base has moved.
func (p *proposer) settle(ctx context.Context, members []member) error {
	if !p.proposes() {
		return nil
	}
	m, branch := members[0], p.remote.branch
	p.left = p.patience
	if p.record.Anew {
		return p.leavePlace(ctx)
	}
	if err := p.refuseForeign(); err != nil {
		return err
	}
	if err := p.check(ctx, m); err != nil {
		return err
	}
	if branch.Missing() {
		if err := p.recreate(ctx); err != nil {
			return err
		}
	}
	if branch.Behind() && !time.Now().Before(p.rebaseAt) {
		return p.rebase(ctx, gitrepo.Hash{})
	}
	return nil
}

// leavePlace drops the commits of another place, such as an earlier folder.
func (p *proposer) leavePlace(ctx context.Context) error {
	next := p.record
	next.Since, next.Anew = p.remote.branch.Tip(), false
	if err := p.write(ctx, next); err != nil {
		return err
	}
	p.remote.since = next.Since
	p.remote.branch.StartAnew()
	return nil
}

// clusterTrailer is the trailer with the cluster of a commit.
const clusterTrailer = "\nX-ConfigButler-ClusterUID: "

// refuseForeign returns an error if the branch has commits of another cluster, which would be replaced.
func (p *proposer) refuseForeign() error {
	for _, commit := range p.remote.branch.Ahead() {
		_, trailer, found := strings.Cut(commit.Message, clusterTrailer)
		uid, _, _ := strings.Cut(trailer, "\n")
		if found && uid != p.cluster() {
			return refused(v1alpha1.ReasonProposalRefused, "branch %s has commits of another cluster (%s): set "+
				"spec.delivery.pullRequest.branchPrefix so that each cluster has a branch of its own", p.key.branch, printable.Line(uid))
		}
	}
	return nil
}

// check asks the host for the pull request if that is due, or the branch is missing, and settles one that has ended.
func (p *proposer) check(ctx context.Context, m member) error {
	// A base that has moved may have got what is proposed.
	now, missing := time.Now(), p.remote.branch.Missing()
	behind := p.remote.branch.Behind() && !now.Before(p.rebaseAt)
	known := p.record.Open() || !p.record.Creating.IsZero()
	switch waits := now.Before(p.retryAt); {
	case !known, !missing && !behind && (waits || now.Before(p.checkAt)):
		return nil
	case waits && p.limited != nil:
		return withoutCheck(missing, p.limited)
	}
	var found *githost.PullRequest
	err := p.atHost(ctx, func(ctx context.Context, host githost.Host) (err error) {
		found, err = p.find(ctx, host)
		return err
	})
	if err != nil {
		return p.failedCheck(ctx, m, missing, err)
	}
	p.checkAt = time.Now().Add(p.poll)
	if found == nil {
		return p.forget(ctx, m)
	}
	if found.State == githost.Open && (found.Head != p.key.branch || found.Base != p.key.base) {
		return p.failedCheck(ctx, m, missing, refused(v1alpha1.ReasonProposalRefused,
			"pull request #%d is from %s to %s now, instead of from %s to %s: change it back, or close it", found.Number,
			printable.Line(found.Head), printable.Line(found.Base), p.key.branch, p.key.base))
	}
	if found.Number != p.record.Number || !p.record.Open() {
		if err := p.opened(ctx, found); err != nil {
			return err
		}
	}
	if found.State != githost.Open {
		// The base that was read before may lack what was merged since.
		if err := p.remote.branch.Refresh(ctx); err != nil {
			return err
		}
	}
	switch found.State {
	case githost.Merged:
		return p.end(ctx, m, found, v1alpha1.ProposalMerged)
	case githost.Closed:
		state := v1alpha1.ProposalDeclined
		if p.record.Closing {
			state = v1alpha1.ProposalEqual
		}
		return p.end(ctx, m, found, state)
	case githost.Open:
	}
	return nil
}

// failedCheck records an error of the host.
func (p *proposer) failedCheck(ctx context.Context, m member, missing bool, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.failed(ctx, m, err)
	return withoutCheck(missing, err)
}

// withoutCheck returns what follows from an error of the host. Without the branch it must be known whether its pull request was merged.
func withoutCheck(missing bool, err error) error {
	if missing {
		return fmt.Errorf("the branch does not exist any more, and its pull request cannot be read: %w", err)
	}
	return nil
}

// creationSkew is how much later than the host's the clock of this server may be.
const creationSkew = 10 * time.Minute

// find returns the newest pull request of the record; nil if it began to open one that does not exist, or another host is configured
// now, which has none.
func (p *proposer) find(ctx context.Context, host githost.Host) (*githost.PullRequest, error) {
	if p.isElsewhere() { // Its numbers are others.
		return host.Newest(ctx, p.key.branch, p.key.base, p.record.Opened.Add(-creationSkew))
	}
	if p.record.Open() {
		found, err := host.Get(ctx, p.record.Number)
		if !isNotFound(err) {
			return found, err
		}
		// If the repository is found, the pull request was deleted, which counts as a decline.
		found, err = host.Newest(ctx, p.key.branch, p.key.base, p.record.Opened.Add(-creationSkew))
		if err == nil && (found == nil || found.Number < p.record.Number) {
			found = &githost.PullRequest{Number: p.record.Number, URL: p.record.URL, State: githost.Closed, Created: p.record.Opened}
		}
		return found, err
	}
	found, err := host.Newest(ctx, p.key.branch, p.key.base, p.record.Creating.Add(-creationSkew))
	if err == nil && found != nil && found.Number <= max(p.record.Number, p.record.Earlier) {
		return nil, nil
	}
	return found, err
}

// forget drops the pull request of another host from the record. It stays as it is there, and its changes are proposed to this one.
func (p *proposer) forget(ctx context.Context, m member) error {
	if !p.record.Open() {
		return nil // It was not opened.
	}
	next := p.record
	next.Host, next.Number, next.URL, next.State, next.Opened, next.Closing = "", 0, "", "", time.Time{}, false
	next.Changes, next.Published, next.Earlier = 0, nil, 0
	if err := p.write(ctx, next); err != nil {
		return err
	}
	p.published = branchState{}
	p.setState(m, 0)
	return nil
}

func isNotFound(err error) bool {
	var refusal *githost.Error
	return errors.As(err, &refusal) && refusal.Kind == githost.NotFound
}

// end records the end of the pull request, and starts the branch anew with the commits that it did not have.
func (p *proposer) end(ctx context.Context, m member, found *githost.PullRequest, state v1alpha1.ProposalState) error {
	branch := p.remote.branch
	through := lastCommitOf(found, p.record.Published, branch.Ahead())
	files := branch.Proposed(through)
	next := p.record
	next.State, next.Ended, next.EndedBy, next.Changes = state, found.Ended, found.EndedBy, int64(len(files))
	next.Closing, next.Published = false, nil
	if next.Ended.IsZero() {
		next.Ended = time.Now()
	}
	if !through.IsZero() {
		next.Since = through
	}
	if state == v1alpha1.ProposalDeclined {
		declined := proposal.Declined{}
		for _, file := range files {
			if _, managed := parseManaged(m.plan.below(file.Path)); managed && !through.IsZero() {
				declined[file.Path] = file.Hash
			}
		}
		next.Declined = &proposal.Ending{Number: found.Number, By: found.EndedBy, Time: next.Ended}
		m.destination.withheld.add(declined)
		if err := p.writeWithheld(ctx, m); err != nil {
			return err
		}
	}
	if err := p.write(ctx, next); err != nil {
		return err
	}
	failpoint.Reach("proposal-ended")
	p.remote.since, p.published = next.Since, branchState{}
	p.recordEvent(m, next)
	p.setState(m, 0)
	if branch.Missing() {
		branch.StartAnew()
		return nil
	}
	return p.rebase(ctx, through)
}

// lastCommitOf returns the last commit that a pull request had when it ended: that which the host names or, if the branch does not have
// it, that which was published last. Records of earlier versions lack the latter: then it is the last that is not younger than the end.
// Zero means none: the base has those of a merged one already.
func lastCommitOf(found *githost.PullRequest, published []gitrepo.Hash, ahead []gitrepo.AheadCommit) gitrepo.Hash {
	for _, tip := range slices.Backward(append(slices.Clone(published), gitrepo.ParseHash(found.HeadSHA))) {
		if slices.ContainsFunc(ahead, func(c gitrepo.AheadCommit) bool { return c.Hash == tip }) {
			return tip
		}
	}
	if len(published) > 0 || found.HeadSHA != "" && found.State == githost.Merged {
		return gitrepo.Hash{}
	}
	for _, commit := range slices.Backward(ahead) {
		if found.Ended.IsZero() || !commit.Time.After(found.Ended) {
			return commit.Hash
		}
	}
	return gitrepo.Hash{}
}

// recreate creates the branch again, which was deleted although its pull request is open, or none is. If the remote has lost the
// commits, too, the comparisons with the cluster make the changes again.
func (p *proposer) recreate(ctx context.Context) error {
	err := p.lease.during(ctx, p.remote.branch.Recreate)
	var git *gitrepo.Error
	if errors.As(err, &git) && git.Kind == gitrepo.Rejected {
		klog.FromContext(ctx).Info("The remote has lost the branch and its commits; it starts anew from its base", "reason", err.Error())
		p.remote.branch.StartAnew()
		return nil
	}
	return err
}

// rebase puts the destination's own commits after one, or all if it is zero, on the tip of the base. It leaves out those of others, which
// it would sign: a comparison follows if the folder differs then.
//
// A remote may refuse to replace the branch. Then further commits are added to it until a user allows that.
func (p *proposer) rebase(ctx context.Context, after gitrepo.Hash) error {
	branch := p.remote.branch
	ahead, own := branch.Ahead(), map[gitrepo.Hash]bool{}
	for _, commit := range p.record.Own {
		own[commit] = true
	}
	rebased, err := branch.Rebase(after, func(commit gitrepo.Hash) bool { return own[commit] }, p.remote.sign)
	if err != nil {
		return err
	}
	if err := p.pushing(ctx, ahead, rebased); err != nil {
		return err
	}
	err = p.lease.during(ctx, func(ctx context.Context) error {
		_, err := branch.Push(ctx)
		return err
	})
	var git *gitrepo.Error
	if errors.As(err, &git) && git.Kind == gitrepo.Rejected {
		p.rebaseAt = time.Now().Add(retryMax)
		p.rebaseRefused = conditions.Reason{Code: v1alpha1.ReasonProposalRefused, Message: fmt.Sprintf(
			"branch %s cannot be put on the new tip of %s: allow the server to force pushes to it; %s", p.key.branch, p.key.base, git.Message)}
		klog.FromContext(ctx).Error(err, "Failed to rebase the branch", "base", p.key.base)
		p.published = branchState{}
		return branch.Refresh(ctx)
	}
	if err != nil {
		return err
	}
	if !p.rebaseRefused.IsZero() {
		p.rebaseRefused, p.published = conditions.Reason{}, branchState{}
	}
	failpoint.Reach("proposal-rebased")
	klog.FromContext(ctx).Info("Rebased the branch", "base", p.key.base, "commits", len(branch.Ahead()))
	return nil
}
