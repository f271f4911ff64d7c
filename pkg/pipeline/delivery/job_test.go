// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

const (
	first  = "search-index-cce01f25c3"
	second = "search-index-04ebb3d1ba"
	made   = "made the Job scans/"
)

// A repeated batch completes what exists, wherever the process died.
func TestJobOfRepeatedBatch(t *testing.T) {
	for name, resource := range map[string]string{
		"nothing failed": "", "before the Job": "jobs", "between the Job and the ConfigMap": "configmaps",
	} {
		t.Run(name, func(t *testing.T) {
			s := newJobFixture(t)
			undo := s.fails("create", resource, 0, errDied)
			before := s.deliver(jobBatch(1))
			if died := before.Outcome == format.Retry; died != (resource != "") {
				t.Fatalf("got %+v", before)
			}
			undo()
			for range 2 {
				s.expect(jobBatch(1), format.Delivered, made+first)
			}
			configMaps := s.configMaps()
			if len(configMaps) != 1 || configMaps[0].OwnerReferences[0].UID != s.only().UID {
				t.Errorf("ConfigMaps = %+v", configMaps)
			}
		})
	}
}

// A Job or ConfigMap with the name of a batch's that belongs to something else is not changed.
func TestForeignObjects(t *testing.T) {
	owned := func(job string) *corev1.ConfigMap {
		owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: "before"}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: first, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{owner},
		}}
	}
	for name, tt := range map[string]struct {
		there   runtime.Object
		outcome format.Outcome
		text    string
	}{
		"Job": {
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: first, Namespace: namespace}}, format.Rejected,
			"there is a Job scans/" + first + " that is not of this batch: delete it, and ask for a sync",
		},
		"Job with labels as ours": {
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: first, Namespace: namespace, Labels: map[string]string{
				v1alpha1.LabelPipeline: "search", v1alpha1.LabelSink: "index",
			}}}, format.Rejected,
			"there is a Job scans/" + first + " that is not of this batch: delete it, and ask for a sync",
		},
		"ConfigMap": {
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: first, Namespace: namespace}}, format.Rejected,
			"there is a ConfigMap scans/" + first + " that is not of this batch: delete it and the Job of that name, and ask for a sync",
		},
		"ConfigMap of a Job that was deleted": {
			owned(first), format.Retry, "the ConfigMap scans/" + first + " is of a Job that was deleted, and goes soon",
		},
		"ConfigMap of another Job": {
			owned("other"), format.Rejected,
			"there is a ConfigMap scans/" + first + " that is not of this batch: delete it and the Job of that name, and ask for a sync",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJobFixture(t)
			if err := s.cluster.Tracker().Add(tt.there); err != nil {
				t.Fatal(err)
			}
			s.expect(jobBatch(1), tt.outcome, tt.text)
		})
	}
}

// Errors of the API server are reported; an invalid Job is not retried.
func TestJobErrors(t *testing.T) {
	jobs, configMaps := schema.GroupResource{Group: "batch", Resource: "jobs"}, schema.GroupResource{Resource: "configmaps"}
	invalid := func(kind string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, first, field.ErrorList{field.Required(field.NewPath("spec"), "")})
	}
	for name, tt := range map[string]struct {
		verb, resource string
		err            error
		want           format.Result
	}{
		"template": {"create", "jobs", invalid("Job"), format.Result{
			Outcome: format.Rejected, Message: `the template makes no valid Job: Job "` + first + `" is invalid: spec: Required value`,
		}},
		"quota": {"create", "jobs", apierrors.NewForbidden(jobs, first, errors.New("exceeded quota: few")), format.Result{
			Outcome: format.Retry, Message: "make the Job scans/" + first + `: jobs.batch "` + first + `" is forbidden: exceeded quota: few`,
		}},
		"no namespace": {"create", "jobs", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace), format.Result{
			Outcome: format.Retry, Message: "make the Job scans/" + first + `: namespaces "scans" not found`,
		}},
		"already exists": {"create", "jobs", apierrors.NewAlreadyExists(jobs, first), format.Result{
			Outcome: format.Retry, Message: "make the Job scans/" + first + `: jobs.batch "` + first + `" already exists`,
		}},
		"busy": {"get", "jobs", apierrors.NewTooManyRequests("slow\ndown", 9), format.Result{
			Outcome: format.Retry, Message: "read the Job scans/" + first + ": slow down", RetryAfter: 9 * time.Second,
		}},
		"list": {"list", "jobs", errDied, format.Result{
			Outcome: format.Retry, Message: "list the Jobs of the sink in namespace scans: the process has died",
		}},
		"quota of ConfigMaps": {
			"create", "configmaps", apierrors.NewForbidden(configMaps, first, errors.New("exceeded quota: few")), format.Result{
				Outcome: format.Retry, Message: "make the ConfigMap scans/" + first + `: configmaps "` + first + `" is forbidden: exceeded quota: few`,
			},
		},
		// The Job exists now, and must get its ConfigMap.
		"ConfigMap": {"create", "configmaps", invalid("ConfigMap"), format.Result{
			Outcome: format.Retry, Message: "make the ConfigMap scans/" + first + `: ConfigMap "` + first + `" is invalid: spec: Required value`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJobFixture(t)
			undo := s.fails(tt.verb, tt.resource, 0, tt.err)
			if got := s.deliver(jobBatch(1)); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			undo()
			s.expect(jobBatch(1), format.Delivered, made+first)
		})
	}
}

// A Job that ends before its ConfigMap exists has processed nothing.
func TestJobEndsBeforeItsConfigMapExists(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(s *jobFixture)
		outcome format.Outcome
		text    string
	}{
		"failed": {
			func(s *jobFixture) { s.ends(s.only(), batchv1.JobFailed, "DeadlineExceeded", "") },
			format.Rejected, "the Job scans/" + first + " has ended before it got its batch: ask for a sync",
		},
		"is being deleted": {
			func(s *jobFixture) {
				going := s.only()
				going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: noon}, []string{"foregroundDeletion"}
				s.update(going)
			},
			format.Retry, "waits for the Job scans/" + first + " to go, which is being deleted and has not got its batch",
		},
		"deleted": {
			func(s *jobFixture) { remove(s, first, s.cluster.BatchV1().Jobs(namespace).Delete) },
			format.Delivered, made + first,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJobFixture(t)
			undo := s.fails("create", "configmaps", 0, errDied)
			s.deliver(jobBatch(1))
			undo()
			tt.change(s)
			s.expect(jobBatch(1), tt.outcome, tt.text)
		})
	}
}

// A repeated batch whose Job has finished counts as delivered.
func TestRepeatedBatchOfFinishedJob(t *testing.T) {
	s := newJobFixture(t)
	s.deliver(jobBatch(1))
	s.ends(s.only(), batchv1.JobFailed, "BackoffLimitExceeded", "")
	s.expect(jobBatch(1), format.Delivered, made+first)
}

func TestConcurrencyPolicy(t *testing.T) {
	const waits = "waits for the Job scans/" + first + " to finish"
	ends := func(kind batchv1.JobConditionType) func(s *jobFixture) {
		return func(s *jobFixture) { s.ends(s.only(), kind, "BackoffLimitExceeded", "it failed\nthrice") }
	}
	for name, tt := range map[string]struct {
		policy  v1alpha1.PipelineConcurrencyPolicy
		before  func(s *jobFixture)
		outcome format.Outcome
		text    string
	}{
		"one runs":               {v1alpha1.PipelineConcurrencyForbid, func(*jobFixture) {}, format.Waiting, waits},
		"one is about to fail":   {v1alpha1.PipelineConcurrencyForbid, ends(batchv1.JobFailureTarget), format.Waiting, waits},
		"one is suspended":       {v1alpha1.PipelineConcurrencyForbid, ends(batchv1.JobSuspended), format.Waiting, waits},
		"one is complete":        {v1alpha1.PipelineConcurrencyForbid, ends(batchv1.JobComplete), format.Delivered, made + second},
		"one runs, which may be": {v1alpha1.PipelineConcurrencyAllow, func(*jobFixture) {}, format.Delivered, made + second},
		"one was deleted": {v1alpha1.PipelineConcurrencyForbid, func(s *jobFixture) {
			remove(s, first, s.cluster.BatchV1().Jobs(namespace).Delete)
		}, format.Delivered, made + second},
		"one has failed": {
			v1alpha1.PipelineConcurrencyForbid, ends(batchv1.JobFailed), format.Delivered,
			made + second + "; the Job scans/" + first + " has failed: BackoffLimitExceeded: it failed thrice",
		},
		"one of another sink runs": {v1alpha1.PipelineConcurrencyForbid, func(s *jobFixture) {
			other := s.only()
			other.Labels[v1alpha1.LabelSink] = "other"
			s.update(other)
		}, format.Delivered, made + second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newJobFixture(t)
			s.spec.ConcurrencyPolicy = tt.policy
			s.deliver(jobBatch(1))
			tt.before(s)
			got := s.deliver(jobBatch(2))
			if got.Outcome != tt.outcome || got.Message != tt.text || (got.RetryAfter > 0) != (tt.outcome == format.Waiting) {
				t.Errorf("got %+v, want %s, %q", got, tt.outcome, tt.text)
			}
		})
	}
}

// The newest of several Jobs decides the failure, and a batch waits for the oldest running one.
func TestNewestJobDecidesFailure(t *testing.T) {
	s := newJobFixture(t)
	s.spec.ConcurrencyPolicy = v1alpha1.PipelineConcurrencyAllow
	failure := func(want string) {
		t.Helper()
		if got, err := s.sink().Failure(t.Context()); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	failure("")
	for number := range int64(11) {
		s.deliver(jobBatch(number + 1))
	}
	for _, made := range s.jobs() {
		switch made.Annotations[v1alpha1.AnnotationSequence] {
		case "9":
			s.ends(&made, batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")
		case "1":
			s.ends(&made, batchv1.JobComplete, "", "")
		}
	}
	failure("")
	for _, made := range s.jobs() {
		switch made.Annotations[v1alpha1.AnnotationSequence] {
		case "10", "11":
			remove(s, made.Name, s.cluster.BatchV1().Jobs(namespace).Delete)
		case "9":
			defer failure("the Job scans/" + made.Name + " has failed: DeadlineExceeded: Job was active longer than specified deadline")
		}
	}
	s.spec.ConcurrencyPolicy = v1alpha1.PipelineConcurrencyForbid
	s.expect(jobBatch(12), format.Waiting, "waits for the Job scans/"+second+" to finish")
}

func TestFailureListError(t *testing.T) {
	s := newJobFixture(t)
	s.fails("list", "jobs", 0, errDied)
	if _, err := s.sink().Failure(t.Context()); !errors.Is(err, errDied) {
		t.Error(err)
	}
}

func TestJobDeliverErrors(t *testing.T) {
	s := newJobFixture(t)
	err := s.sink().Deliver(t.Context(), jobBatch(1), func([]item.Key, format.Result) error { return errDied })
	if !errors.Is(err, errDied) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.fails("*", "*", 0, ctx.Err())
	err = s.sink().Deliver(ctx, jobBatch(2), func(_ []item.Key, result format.Result) error {
		t.Errorf("unexpected result %+v", result)
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestInvalidTemplate(t *testing.T) {
	s := newJobFixture(t)
	s.spec.Template.Raw = []byte(`{"spec": 1}`)
	if _, err := delivery.NewJob(s.cluster, s.source, s.spec); err == nil {
		t.Error("invalid template was accepted")
	}
}
