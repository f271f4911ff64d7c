// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// jobHistory holds the existing Jobs of a sink, the oldest first.
type jobHistory []batchv1.Job

func newJobHistory(jobs []batchv1.Job) jobHistory {
	slices.SortStableFunc(jobs, func(a, b batchv1.Job) int { return cmp.Compare(jobSequence(&a), jobSequence(&b)) })
	return jobs
}

// running returns the oldest Job that has not finished, or nil.
func (h jobHistory) running() *batchv1.Job {
	for i := range h {
		if !isFinished(&h[i]) {
			return &h[i]
		}
	}
	return nil
}

// failure returns why the newest Job has failed, or an empty string if it has not.
func (h jobHistory) failure() string {
	if len(h) == 0 {
		return ""
	}
	newest := &h[len(h)-1]
	failed := trueCondition(newest, batchv1.JobFailed)
	if failed == nil {
		return ""
	}
	return fmt.Sprintf("the Job %s/%s has failed: %s", newest.Namespace, newest.Name, summary.With(failed.Reason, failed.Message))
}

// isFinished reports whether a Job is complete or has failed.
func isFinished(job *batchv1.Job) bool {
	return trueCondition(job, batchv1.JobComplete) != nil || trueCondition(job, batchv1.JobFailed) != nil
}

// trueCondition returns the condition of a type if it is true, nil otherwise.
func trueCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
	if at < 0 {
		return nil
	}
	return &job.Status.Conditions[at]
}

// jobSequence returns the sequence of the batch that a Job was created for, or 0 if the annotation was removed.
func jobSequence(job *batchv1.Job) int64 {
	number, _ := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationSequence], 10, 64)
	return number
}
