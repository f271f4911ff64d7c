// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const template = `{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"index","image":"index:1"}]}}}}`

// jobs returns the existing Jobs, oldest first.
func (s *fixture) jobs() []batchv1.Job {
	s.Helper()
	list, err := s.kube.BatchV1().Jobs("search").List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int {
		return strings.Compare(a.Annotations[v1alpha1.AnnotationSequence], b.Annotations[v1alpha1.AnnotationSequence])
	})
	return list.Items
}

// finish completes a Job.
func (s *fixture) finish(job batchv1.Job, how batchv1.JobConditionType) {
	s.Helper()
	job.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, Message: "the index is full"}}
	if _, err := s.kube.BatchV1().Jobs("search").UpdateStatus(s.Context(), &job, metav1.UpdateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// TestJobs checks that Jobs run one after the other, and that the status shows their failures.
func TestJobs(t *testing.T) {
	s := newFixture(t)
	s.create(inventory(v1alpha1.PipelineSink{Name: "index", Job: &v1alpha1.JobSink{
		Namespace: "search", Template: runtime.RawExtension{Raw: []byte(template)},
	}}))
	s.start()
	s.eventually("a Job is made", func() error { return atLeast(len(s.jobs()), 1) })
	s.reaches("the next batch waits", func(status *v1alpha1.SyncPipelineStatus) bool {
		return strings.HasPrefix(status.Sinks[0].LastAnswer, "waits for the Job search/") && status.Sinks[0].Failures == 0
	})
	s.pass(60)
	if jobs := s.jobs(); len(jobs) != 1 {
		t.Fatalf("%d Jobs run concurrently", len(jobs))
	}
	s.finish(s.jobs()[0], batchv1.JobFailed)
	s.eventually("the next Job is made", func() error { return atLeast(len(s.jobs()), 2) })
	s.says(v1alpha1.ConditionReady, v1alpha1.ReasonSucceeded)
	last := s.jobs()[1]
	s.finish(last, batchv1.JobFailed)
	status := s.reaches("its failure is shown", func(status *v1alpha1.SyncPipelineStatus) bool {
		return status.Sinks[0].LastError != nil && status.Sinks[0].LastError.Reason == "JobFailed"
	})
	if want := fmt.Sprintf("the Job search/%s has failed", last.Name); !strings.HasPrefix(status.Sinks[0].LastError.Message, want) {
		t.Errorf("lastError = %q", status.Sinks[0].LastError.Message)
	}
	s.finish(last, batchv1.JobComplete)
	s.reaches("the failure is over", func(status *v1alpha1.SyncPipelineStatus) bool { return status.Sinks[0].LastError == nil })
}
