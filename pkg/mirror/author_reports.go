// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
)

// auditSilence is how long changes may go without any audit event before the audit counts as silent. An API server tries
// for little more than a minute to deliver one.
const auditSilence = 10 * time.Minute

// authorReports is how well API servers tell who makes changes.
type authorReports struct {
	// expected says that there is a source that has been set up, known, that there is something to tell of it.
	expected, known bool
	verdict         verdict
}

// reports tells how the sources of facts are.
func (a *authors) reports(now time.Time) authorReports {
	return judgeReports(a.joiner.Sources(), a.auditExpected, a.maxWait, now)
}

// judgeReports decides by the sources of facts. Only the audit is expected to say something: whether a webhook is asked
// is up to the API server, and a source that was not set up is no fault.
func judgeReports(sources []attribution.SourceState, auditExpected bool, maxWait time.Duration, now time.Time) authorReports {
	out := authorReports{expected: auditExpected}
	for _, source := range sources {
		heard := !source.LastFact.IsZero()
		if source.Signal == attribution.Audit && auditExpected {
			out.verdict = judgeAudit(source, maxWait, now)
			out.known = heard || !out.verdict.ok()
		} else if source.Signal == attribution.Admission {
			out.known = out.known || heard
		}
	}
	return out
}

func judgeAudit(audit attribution.SourceState, maxWait time.Duration, now time.Time) verdict {
	switch {
	case !audit.WantedSince.IsZero() && now.Sub(audit.WantedSince) >= auditSilence:
		return verdict{v1alpha1.ReasonAuditSilent, fmt.Sprintf(
			"objects change, and no audit event has come since %s", audit.WantedSince.UTC().Format(time.RFC3339))}
	case maxWait > 0 && audit.Lag > maxWait:
		return verdict{v1alpha1.ReasonAuditLate, fmt.Sprintf(
			"audit events come later than changes wait for them (--attribution-max-wait, %s), so that commits are made without them; "+
				"kube-apiserver needs --audit-webhook-batch-max-wait=200ms", maxWait)}
	}
	return verdict{}
}
