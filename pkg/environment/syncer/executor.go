// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// Job is a sync, and the SyncStatuses that record it.
type Job struct {
	// Environment is as read just before.
	Environment *v1alpha1.Environment
	// Records are the SyncStatus of the sync, and the Dependency record that it also completes, if there is one.
	Records []*v1alpha1.SyncStatus
	// Request has ModeSync, or ModeDryRun to record only what would be done. Execute sets its environment and hooks.
	Request Request
}

// Outcome is the outcome of a job.
type Outcome struct {
	// Records are the records as last written, in the order of the job. Their resourceVersions may be outdated.
	Records []*v1alpha1.SyncStatus
	// Result is the result of the run. Its Plan is nil if there was no run, because the first record was dismissed, superseded or
	// deleted, or has been interrupted too often.
	Result Result
}

// Executor executes jobs. It is safe for concurrent use by one job of each environment.
type Executor struct {
	Runner  Runner
	Records Records
	// SyncStatuses reads records, including those of catalogs.
	SyncStatuses typed.SyncStatusesGetter
	Catalogs     typed.AppCatalogsGetter
	Clock        clock.PassiveClock
	// Policy returns the current settings with their defaults.
	Policy func() v1alpha1.SyncPolicySpec
}

// Runner runs syncs, as Syncer does.
type Runner interface {
	Run(ctx context.Context, request Request) (Result, error)
}

var _ Runner = &Syncer{}

// Execute executes a job. It returns an error if the outcome could not be recorded, or if ctx ended. The records may then be
// InProgress, and the job must be executed again.
func (e *Executor) Execute(ctx context.Context, job Job) (Outcome, error) {
	x := &execution{executor: e, job: job}
	for _, record := range job.Records {
		x.records = append(x.records, &jobRecord{executor: e, record: record, target: job.Environment.Spec.TargetNamespace})
	}
	result, err := x.executeTraced(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("carry out SyncStatus %s/%s: %w", job.Records[0].Namespace, job.Records[0].Name, err)
	}
	outcome := Outcome{Result: result}
	for _, r := range x.records {
		outcome.Records = append(outcome.Records, r.record)
	}
	return outcome, nil
}
