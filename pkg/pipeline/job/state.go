// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package job

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

// history is the Jobs of a sink that there are, the oldest first.
type history []batchv1.Job

func newHistory(jobs []batchv1.Job) history {
	slices.SortStableFunc(jobs, func(a, b batchv1.Job) int { return cmp.Compare(sequence(&a), sequence(&b)) })
	return jobs
}

// running is the oldest Job that has not finished, or nil.
func (h history) running() *batchv1.Job {
	for i := range h {
		if !finished(&h[i]) {
			return &h[i]
		}
	}
	return nil
}

// failure says why the newest Job has failed. It is empty when that one has not.
func (h history) failure() string {
	if len(h) == 0 {
		return ""
	}
	newest := &h[len(h)-1]
	failed := condition(newest, batchv1.JobFailed)
	if failed == nil {
		return ""
	}
	return fmt.Sprintf("the Job %s/%s has failed: %s", newest.Namespace, newest.Name, summary.With(failed.Reason, failed.Message))
}

func finished(job *batchv1.Job) bool {
	return condition(job, batchv1.JobComplete) != nil || condition(job, batchv1.JobFailed) != nil
}

// condition is one that a Job has and that is true, or nil.
func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
	if at < 0 {
		return nil
	}
	return &job.Status.Conditions[at]
}

// sequence is the place of a Job among those of its sink, or 0 where somebody has taken it off.
func sequence(job *batchv1.Job) int64 {
	number, _ := strconv.ParseInt(job.Annotations[v1alpha1.AnnotationSequence], 10, 64)
	return number
}
