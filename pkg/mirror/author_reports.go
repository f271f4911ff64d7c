// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
)

// auditSilence is how long changes may occur without any audit event before the audit counts as silent. An API server retries the
// delivery of an event for little more than a minute.
const auditSilence = 10 * time.Minute

// authorReports is how well API servers report the users who make changes.
type authorReports struct {
	// expected is set if a source is configured.
	expected bool
	// known is set if it is known whether sources report.
	known bool
	// problem is why a configured source does not report in time.
	problem conditions.Reason
}

// reports returns the state of the sources of facts.
func (a *authors) reports(now time.Time) authorReports {
	return reportsOf(a.joiner.Sources(), a.auditExpected, a.maxWait, now)
}

// reportsOf computes the state of the sources. Only a missing audit is a problem: the API server decides whether it calls an admission
// webhook, and a source need not be configured.
func reportsOf(sources []attribution.SourceState, auditExpected bool, maxWait time.Duration, now time.Time) authorReports {
	out := authorReports{expected: auditExpected}
	for _, source := range sources {
		reported := !source.LastFact.IsZero()
		if source.Signal == attribution.Audit && auditExpected {
			out.problem = auditProblem(source, maxWait, now)
			out.known = reported || !out.problem.IsZero()
		} else if source.Signal == attribution.Admission {
			out.known = out.known || reported
		}
	}
	return out
}

// auditProblem returns why audit events do not arrive in time; zero if they do.
func auditProblem(audit attribution.SourceState, maxWait time.Duration, now time.Time) conditions.Reason {
	switch {
	case !audit.WantedSince.IsZero() && now.Sub(audit.WantedSince) >= auditSilence:
		return conditions.Reason{Code: v1alpha1.ReasonAuditSilent, Message: fmt.Sprintf(
			"objects change, and no audit event has come since %s", audit.WantedSince.UTC().Format(time.RFC3339))}
	case maxWait > 0 && audit.Lag > maxWait:
		return conditions.Reason{Code: v1alpha1.ReasonAuditLate, Message: fmt.Sprintf(
			"audit events come later than changes wait for them (--attribution-max-wait, %s), so that commits are made without them; "+
				"kube-apiserver needs --audit-webhook-batch-max-wait=200ms", maxWait)}
	}
	return conditions.Reason{}
}
