// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
)

// proposalInterval is the shortest time between two updates of the text of a pull request, so that a burst of changes costs the host few
// requests.
const proposalInterval = 10 * time.Second

// hostPatience bounds the requests to the host in one cycle. Changes of the branch wait meanwhile, those of other branches do not. It is
// what githost allows for one request, which is more than a host needs: GitHub ends a request after 10 seconds (docs.github.com, Timeouts).
const hostPatience = 30 * time.Second

// maxOwn is the number of own commits that are stored although the branch does not have them.
const maxOwn = 100

// maxStoredOwn bounds the hashes of own commits that are stored, with 27 bytes each: a row may have 1.5 MiB. A rebase leaves out the
// commits before, and a comparison makes their changes again.
const maxStoredOwn = 20_000

// proposer keeps one pull request from the branch of a destination's own to its base, as long as the two differ.
//
// The worker calls it between its other work: settle before changes are staged, which starts the branch anew after a merge or a
// decline and rebases it when the base has moved, and publish when everything is pushed, which opens, updates or closes the pull request.
// An error of the host delays only the pull request: changes are pushed to the branch meanwhile.
//
// A process that dies at any step leaves a record from which the next resumes: Creating and Closing are stored before the call, and
// what has ended is stored before the branch is replaced.
type proposer struct {
	key    branchKey
	log    *proposal.Log
	remote *remoteBranch
	lease  *branchLease
	// connect returns the client of the host with its current credentials. address is that of the last one.
	connect func(context.Context, branchKey) (githost.Host, error)
	address string
	// aside calls a function that waits for the host, without the slot of the branch.
	aside func(ctx context.Context, call func() error) error
	// cluster is the name of the cluster in texts.
	cluster func() string
	// changed requests an update of conditions; event records an Event of a destination.
	changed func()
	event   func(destination *v1alpha1.GitDestination, eventType, reason, message string)
	// interval is proposalInterval, poll how often the host is asked without a trigger.
	interval, poll time.Duration
	// patience is hostPatience, and left what is left of it in this cycle.
	patience, left time.Duration

	// uid is the destination of record and stored; empty before they have been read.
	uid    types.UID
	record proposal.Record
	// stored are the declined files as they were last stored.
	stored proposal.Declined
	// checkAt is when the host is asked again, updateAt the earliest time of the next update.
	checkAt, updateAt time.Time
	// retry is the delay after the first error.
	retry   time.Duration
	backoff wait.Backoff
	// retryAt is the time of the next attempt after an error; zero without one.
	retryAt time.Time
	// limited is the error of a host that limits requests until then; nil if it does not.
	limited error
	// rebaseRefused is why the remote does not let the branch be rebased; zero if it does. It is tried again at rebaseAt.
	rebaseRefused conditions.Reason
	rebaseAt      time.Time
	// published is the state of the branch that the pull request was last brought to.
	published branchState
}

// branchState identifies the commits of a branch and its base, and the plan that describes them.
type branchState struct {
	tip, base  gitrepo.Hash
	generation int64
}

func newProposer(
	key branchKey, services *branchServices, remote *remoteBranch, lease *branchLease, aside func(context.Context, func() error) error,
) *proposer {
	return &proposer{
		key: key, log: services.proposals, remote: remote, lease: lease, connect: services.host, aside: aside, patience: services.hostPatience,
		cluster: func() string { return services.identity.ClusterUID },
		changed: services.changed, event: services.event, interval: services.proposalInterval, poll: services.pollInterval,
		retry: services.retry, backoff: newBackoff(services.retry),
	}
}

// proposes reports whether the branch is proposed to another.
func (p *proposer) proposes() bool { return p.key.base != "" }

// restore reads what is stored of the destination, before the branch is loaded.
func (p *proposer) restore(ctx context.Context, members []member) error {
	if !p.proposes() {
		return nil
	}
	d := members[0].destination
	at := members[0].plan.place()
	place := fmt.Sprintf("%s %s %s %q", at.repository, p.key.branch, p.key.base, at.folder)
	if p.uid == d.uid && p.record.Place == place {
		return nil
	}
	record, declined, err := p.log.Read(ctx, d.uid, place)
	if err != nil {
		return err
	}
	p.uid, p.record, p.stored, p.checkAt, p.published = d.uid, record, declined, time.Time{}, branchState{}
	p.remote.since = record.Since
	d.withheld.set(declined)
	p.setState(members[0], int(record.Changes))
	return nil
}

// checkNow lets the host be asked at once, unless it limits requests.
func (p *proposer) checkNow() {
	p.checkAt = time.Time{}
	if p.limited == nil {
		p.retryAt = time.Time{}
	}
}

// syncRequested ends the withholding of files whose types are compared at the request of a user.
func (p *proposer) syncRequested(m member) {
	if !p.proposes() {
		return
	}
	m.destination.withheld.releaseIf(func(path string, _ gitrepo.Hash) bool {
		file, managed := parseManaged(m.plan.below(path))
		return !managed || m.destination.seeds.isRequested(file.object.GroupVersionResource())
	})
}

// atHost calls the host, for as long as is left in this cycle.
func (p *proposer) atHost(ctx context.Context, call func(context.Context, githost.Host) error) error {
	return p.aside(ctx, func() error {
		began := time.Now()
		defer func() { p.left -= time.Since(began) }()
		ctx, cancel := context.WithTimeout(ctx, p.left)
		defer cancel()
		host, err := p.connect(ctx, p.key)
		if err != nil {
			return err
		}
		p.address = host.Address()
		return call(ctx, host)
	})
}

// isElsewhere reports whether the pull request of the record is at another host than the last one.
func (p *proposer) isElsewhere() bool {
	return p.record.Open() && p.record.Host != "" && p.record.Host != p.address
}

// opened records a pull request that is open, or was.
func (p *proposer) opened(ctx context.Context, found *githost.PullRequest) error {
	next := p.record
	next.Host, next.Number, next.URL, next.Opened, next.State = p.address, found.Number, found.URL, found.Created, v1alpha1.ProposalOpen
	next.Creating, next.Closing, next.Changes, next.Ended, next.EndedBy = time.Time{}, false, 0, time.Time{}, ""
	return p.write(ctx, next)
}

// write stores a record.
func (p *proposer) write(ctx context.Context, next proposal.Record) error {
	if err := p.log.Write(ctx, p.uid, next); err != nil {
		return err
	}
	p.record = next
	return nil
}

// pushing stores, before the push, that the staged commits are the destination's own. ahead are the commits that the remote's branch has,
// and rebased are those that a rebase makes of them.
func (p *proposer) pushing(ctx context.Context, ahead []gitrepo.AheadCommit, rebased map[gitrepo.Hash]gitrepo.Hash) error {
	staged := p.remote.branch.Staged()
	if !p.proposes() || len(staged) == 0 {
		return nil
	}
	next := p.record
	next.Own = ownCommits(next.Own, ahead, staged)
	for _, tip := range slices.Backward(next.Published) {
		if after, ok := rebased[tip]; ok {
			next.Published = append(slices.Clone(next.Published), after)
			break
		}
	}
	return p.write(ctx, next)
}

// ownCommits returns the stored hashes of own commits with those that are staged added. Those that the branch does not have any more are
// removed once they are the most, but for the last ones, which a push in doubt may have brought to the remote.
func ownCommits(own proposal.Hashes, ahead []gitrepo.AheadCommit, staged []gitrepo.Hash) proposal.Hashes {
	own = slices.Clone(own)
	doubted := maxOwn + len(staged)
	if n := len(own); n > 2*len(ahead)+doubted {
		kept := map[gitrepo.Hash]bool{}
		for _, commit := range ahead {
			kept[commit.Hash] = true
		}
		for _, commit := range own[n-doubted:] {
			kept[commit] = true
		}
		own = slices.DeleteFunc(own, func(commit gitrepo.Hash) bool { return !kept[commit] })
	}
	own = append(own, staged...)
	return own[max(0, len(own)-maxStoredOwn):]
}

// writeWithheld stores the withheld files if they have changed.
func (p *proposer) writeWithheld(ctx context.Context, m member) error {
	files, changed := m.destination.withheld.toStore()
	if !changed {
		return nil
	}
	if err := p.log.WriteDeclined(ctx, p.uid, p.stored, files); err != nil {
		m.destination.withheld.storeAgain()
		return err
	}
	p.stored = files
	return nil
}

// recordEvent records an Event of the end of a pull request.
func (p *proposer) recordEvent(m member, ended proposal.Record) {
	by := ""
	if ended.EndedBy != "" {
		by = " by " + ended.EndedBy
	}
	switch ended.State {
	case v1alpha1.ProposalMerged:
		p.event(m.plan.object, corev1.EventTypeNormal, reasonProposalMerged, fmt.Sprintf("Pull request #%d was merged%s", ended.Number, by))
	case v1alpha1.ProposalDeclined:
		p.event(m.plan.object, corev1.EventTypeWarning, v1alpha1.ConditionProposalDeclined, fmt.Sprintf(
			"Pull request #%d was closed%s without a merge; its changes are not proposed again until their objects change", ended.Number, by))
	case v1alpha1.ProposalEqual:
		p.event(m.plan.object, corev1.EventTypeNormal, reasonProposalClosed, fmt.Sprintf(
			"Pull request #%d was closed, because there is no difference to branch %s any more", ended.Number, p.key.base))
	case v1alpha1.ProposalOpen:
	}
}

// failed records an error of the host, and when to try again.
func (p *proposer) failed(ctx context.Context, m member, err error) {
	if ctx.Err() != nil {
		return
	}
	delay := p.backoff.Step()
	var refusal *githost.Error
	if errors.As(err, &refusal) && refusal.RetryAfter > delay {
		delay = refusal.RetryAfter
	}
	p.limited = nil
	if refusal != nil && refusal.Kind == githost.RateLimited {
		p.limited = err
	}
	p.retryAt, p.updateAt = time.Now().Add(delay), time.Time{} // Updates after an error are spaced by its backoff.
	klog.FromContext(ctx).Error(err, "Failed to serve the pull request", "retryAfter", delay.Round(time.Millisecond))
	countRetry(err)
	state := proposalState{}
	if before := m.destination.proposal.Load(); before != nil {
		state = *before
	}
	state.problem = proposalProblem(err)
	m.destination.proposal.Store(&state)
	p.changed()
}

// succeeded records that the pull request is up to date.
func (p *proposer) succeeded(m member, changes int) {
	p.backoff, p.retryAt, p.limited = newBackoff(p.retry), time.Time{}, nil
	p.setState(m, changes)
}

// storeWithheld stores the withheld files if events and comparisons have released some, or the base has what was declined.
func (p *proposer) storeWithheld(ctx context.Context, m member, proposed []gitrepo.ProposedFile) error {
	if len(p.stored) == 0 {
		return nil
	}
	for _, file := range proposed {
		m.destination.withheld.release(file.Path)
	}
	base := p.remote.branch.BaseTree()
	m.destination.withheld.releaseIf(func(path string, hash gitrepo.Hash) bool {
		inBase, _ := base.Lookup(path)
		return inBase == hash
	})
	if err := p.writeWithheld(ctx, m); err != nil {
		return err
	}
	if len(p.stored) > 0 || p.record.Declined == nil {
		return nil
	}
	next := p.record
	next.Declined = nil
	return p.write(ctx, next)
}
