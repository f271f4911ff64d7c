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

// Job is a run, and the records that it brings to their end.
type Job struct {
	// Environment is as read just before.
	Environment *v1alpha1.Environment
	// Records are that of the run, and the Dependency record that ends with it, if there is one.
	Records []*v1alpha1.SyncStatus
	// Request is of the mode Sync, or of the mode Check if it is only recorded what would be done. Its environment and its hooks
	// are set by Execute.
	Request Request
}

// Outcome is what came of a job.
type Outcome struct {
	// Records are as they were written last, in the order of the job's. Their resourceVersions may be older.
	Records []*v1alpha1.SyncStatus
	// Result is that of the run. Its Plan is nil if there was none, because the first record is not to be carried out any more:
	// somebody has put it aside, it was superseded or deleted, it has died too often.
	Result Result
}

// Executor carries out jobs. It may be used concurrently, by one job of each environment.
type Executor struct {
	Runner  Runner
	Records Records
	// SyncStatuses reads records as they are now, those of catalogs, too.
	SyncStatuses typed.SyncStatusesGetter
	// Catalogs reads what environments are built from.
	Catalogs typed.AppCatalogsGetter
	Clock    clock.PassiveClock
	// Policy returns the settings of now, with their defaults.
	Policy func() v1alpha1.SyncPolicySpec
}

// Runner carries out syncs, as Syncer does.
type Runner interface {
	Run(ctx context.Context, request Request) (Result, error)
}

var _ Runner = &Syncer{}

// Execute carries out a job. It returns an error if what came of it could not be recorded, or ctx has ended. The records may be
// InProgress then, and the job is to be done again.
func (j *Executor) Execute(ctx context.Context, job Job) (Outcome, error) {
	w := &work{Executor: j, Job: job}
	for _, record := range job.Records {
		w.entries = append(w.entries, &entry{Executor: j, record: record, target: job.Environment.Spec.TargetNamespace})
	}
	result, err := w.do(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("carry out SyncStatus %s/%s: %w", job.Records[0].Namespace, job.Records[0].Name, err)
	}
	outcome := Outcome{Result: result}
	for _, e := range w.entries {
		outcome.Records = append(outcome.Records, e.record)
	}
	return outcome, nil
}
