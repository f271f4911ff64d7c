// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/mirror/internal/githost"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Reasons of Events about pull requests.
const (
	reasonProposalOpened = "ProposalOpened"
	reasonProposalMerged = "ProposalMerged"
	reasonProposalClosed = "ProposalClosed"
)

// proposalState is what is shown of a destination's pull request. It is replaced, never changed.
type proposalState struct {
	// newest is the newest pull request; nil if there was none.
	newest *v1alpha1.Proposal
	// declined is the last one that was declined, while files of it are withheld.
	declined *proposal.Ending
	withheld int
	// problem is why the pull request is not as it should be; zero if it is.
	problem conditions.Reason
}

// setState sets what is shown of the pull request. The only problem is a refused rebase.
func (p *proposer) setState(m member, changes int) {
	state := &proposalState{declined: p.record.Declined, withheld: len(p.stored), problem: p.rebaseRefused}
	if r := p.record; r.Number > 0 {
		state.newest = &v1alpha1.Proposal{
			Number: r.Number, URL: r.URL, State: r.State, Branch: p.key.branch, Changes: r.Changes,
			OpenTime: metav1.NewTime(r.Opened.Truncate(time.Second)), EndTime: timeOrNil(r.Ended), EndedBy: printable.Line(r.EndedBy),
		}
		if r.Open() {
			state.newest.Changes = int64(changes)
		}
	}
	m.destination.proposal.Store(state)
	p.changed()
}

// proposalProblem returns the reason of an error of the host.
func proposalProblem(err error) conditions.Reason {
	reason := reasonOf(err, v1alpha1.ReasonProposalFailed)
	var refusal *githost.Error
	if errors.As(err, &refusal) {
		switch refusal.Kind {
		case githost.Unauthorized, githost.NotFound, githost.Refused, githost.Invalid:
			reason.Code = v1alpha1.ReasonProposalRefused
		case githost.Unreachable, githost.RateLimited, githost.Protocol:
		}
	}
	return reason
}

// describe describes the pull request in one sentence; empty if there is nothing to say.
func (s *proposalState) describe() string {
	switch {
	case s == nil:
		return ""
	case s.newest != nil && s.newest.State == v1alpha1.ProposalOpen:
		return fmt.Sprintf("%s proposed in #%d", summary.Count(int(s.newest.Changes), "change"), s.newest.Number)
	case s.declined != nil && s.withheld > 0:
		return fmt.Sprintf("%s declined in #%d", summary.Count(s.withheld, "change"), s.declined.Number)
	}
	return ""
}

// setProposal sets the conditions of a delivery by pull request.
func setProposal(set *conditions.Setter, p *destinationPlan, s *proposalState) {
	delivery := p.object.PullRequest()
	if delivery == nil || s == nil {
		return
	}
	var declined conditions.Reason
	if s.declined != nil && s.withheld > 0 {
		declined = conditions.Reason{Code: v1alpha1.ReasonClosedWithoutMerge, Message: fmt.Sprintf(
			"Pull request #%d was closed without a merge%s at %s; %s not proposed again until the objects change, or a sync is "+
				"requested (kubectl slipstream sync gitdestination/%s -n %s)", s.declined.Number, byText(s.declined.By),
			s.declined.Time.UTC().Format(time.RFC3339), isOrAre(s.withheld, "file"), p.object.Name, p.object.Namespace)}
	}
	set.Problem(v1alpha1.ConditionProposalDeclined, declined,
		conditions.Reason{Code: v1alpha1.ReasonNothingDeclined, Message: "Nothing is withheld because of a declined pull request"})
	if delivery.MaxOpenAge == nil {
		return
	}
	var overdue conditions.Reason
	if open := s.newest; open != nil && open.State == v1alpha1.ProposalOpen && time.Since(open.OpenTime.Time) >= delivery.MaxOpenAge.Duration {
		overdue = conditions.Reason{Code: v1alpha1.ReasonOpenTooLong, Message: fmt.Sprintf(
			"Pull request #%d is open since %s, longer than spec.delivery.pullRequest.maxOpenAge (%s): merge or close it", open.Number,
			open.OpenTime.UTC().Format(time.RFC3339), delivery.MaxOpenAge.Duration)}
	}
	set.Problem(v1alpha1.ConditionProposalOverdue, overdue,
		conditions.Reason{Code: v1alpha1.ReasonInTime, Message: "No pull request is open for longer than maxOpenAge"})
}

func byText(who string) string {
	if who == "" {
		return ""
	}
	return " by " + printable.Line(who)
}

// isOrAre returns a count with its verb, as in: 2 files are.
func isOrAre(n int, noun string) string {
	if n == 1 {
		return summary.Count(n, noun) + " is"
	}
	return summary.Count(n, noun) + " are"
}
