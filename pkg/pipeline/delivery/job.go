// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// jobPollInterval is how long a batch waits before the sink checks again whether the previous Job has finished.
	jobPollInterval = 5 * time.Second
	// maxJobMessage bounds the bytes of an API server's error that a result quotes.
	maxJobMessage = 500
)

// Job creates a Kubernetes Job for each batch.
type Job struct {
	cluster  kubernetes.Interface
	source   format.Source
	spec     v1alpha1.JobSink
	template batchv1.JobTemplateSpec
}

var _ Sink = &Job{}

// NewJob returns the sink for a spec, which must have its defaults.
func NewJob(cluster kubernetes.Interface, source format.Source, spec v1alpha1.JobSink) (*Job, error) {
	j := &Job{cluster: cluster, source: source, spec: spec}
	if err := json.Unmarshal(spec.Template.Raw, &j.template); err != nil {
		return nil, fmt.Errorf("read the template of Jobs: %w", err)
	}
	return j, nil
}

// Close does nothing: the sink holds no connections of its own.
func (*Job) Close() {}

// Deliver creates the Job of a batch and the ConfigMap that it mounts, or whichever of the two is missing. The batch is one part.
func (j *Job) Deliver(ctx context.Context, batch item.Batch, record RecordFunc) error {
	document, err := format.Document(batch, j.source)
	if err != nil {
		return err
	}
	result := j.ensure(ctx, batch, document)
	if result.Outcome == format.Retry && ctx.Err() != nil {
		return ctx.Err()
	}
	result.Message = summary.Cut(summary.Line(result.Message), maxJobMessage)
	if err := record(batch.Keys(), result); err != nil {
		return fmt.Errorf("record the result of batch %s: %w", batch.ID, err)
	}
	return nil
}

// Failure returns why the newest existing Job has failed. It is empty when that Job is running or complete, or when there is none.
func (j *Job) Failure(ctx context.Context) (string, error) {
	jobs, err := j.history(ctx)
	if err != nil {
		return "", err
	}
	return jobs.failure(), nil
}

// ensure creates the Job of a batch, or completes the one that exists.
func (j *Job) ensure(ctx context.Context, batch item.Batch, document []byte) format.Result {
	if size := len(batchFile) + len(document); size > corev1.MaxSecretSize {
		return rejected("the batch takes %d bytes, and a ConfigMap at most %d: lower spec.batch.maxItems", size, corev1.MaxSecretSize)
	}
	name := j.jobName(batch.ID)
	job, err := j.cluster.BatchV1().Jobs(j.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return j.create(ctx, batch, document)
	case err != nil:
		return j.retry("read the Job", name, err)
	case !j.isOf(job, batch):
		return rejected("there is a Job %s/%s that is not of this batch: delete it, and ask for a sync", job.Namespace, job.Name)
	}
	return j.ensureConfigMap(ctx, job, document)
}

// isOf reports whether a Job was created for a batch.
func (j *Job) isOf(job *batchv1.Job, batch item.Batch) bool {
	return labels.SelectorFromSet(j.labels()).Matches(labels.Set(job.Labels)) && job.Annotations[v1alpha1.AnnotationBatch] == batch.ID
}

// create creates the Job and the ConfigMap of a batch, unless the concurrency policy makes it wait for the Job before.
func (j *Job) create(ctx context.Context, batch item.Batch, document []byte) format.Result {
	previous, err := j.history(ctx)
	if err != nil {
		return format.Result{Outcome: format.Retry, Message: err.Error()}
	}
	if running := previous.running(); running != nil && j.spec.ConcurrencyPolicy != v1alpha1.PipelineConcurrencyAllow {
		return format.Result{
			Outcome: format.Waiting, RetryAfter: jobPollInterval,
			Message: fmt.Sprintf("waits for the Job %s/%s to finish", running.Namespace, running.Name),
		}
	}
	desired := j.job(batch)
	job, err := j.cluster.BatchV1().Jobs(desired.Namespace).Create(ctx, desired, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsInvalid(err):
		return rejected("the template makes no valid Job: %s", err)
	case err != nil:
		return j.retry("make the Job", desired.Name, err)
	}
	result := j.ensureConfigMap(ctx, job, document)
	if failure := previous.failure(); failure != "" && result.Outcome == format.Delivered {
		result.Message += "; " + failure
	}
	return result
}

// history lists the existing Jobs of the sink.
func (j *Job) history(ctx context.Context) (jobHistory, error) {
	selector := labels.SelectorFromSet(j.labels()).String()
	list, err := j.cluster.BatchV1().Jobs(j.spec.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of the sink in namespace %s: %w", j.spec.Namespace, err)
	}
	return newJobHistory(list.Items), nil
}

// ensureConfigMap creates the ConfigMap that a Job of the sink mounts, or checks the one that exists.
func (j *Job) ensureConfigMap(ctx context.Context, job *batchv1.Job, document []byte) format.Result {
	configMaps := j.cluster.CoreV1().ConfigMaps(job.Namespace)
	if !isFinished(job) && job.DeletionTimestamp == nil {
		_, err := configMaps.Create(ctx, j.configMap(job, document), metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		switch {
		case err == nil:
			return deliveredTo(job)
		case !apierrors.IsAlreadyExists(err):
			return j.retry("make the ConfigMap", job.Name, err)
		}
	}
	existing, err := configMaps.Get(ctx, job.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && isFinished(job):
		return rejected("the Job %s/%s has ended before it got its batch: ask for a sync", job.Namespace, job.Name)
	case apierrors.IsNotFound(err):
		return retrySoon("waits for the Job %s/%s to go, which is being deleted and has not got its batch", job.Namespace, job.Name)
	case err != nil:
		return j.retry("read the ConfigMap", job.Name, err)
	}
	return checkOwner(existing, job)
}

// checkOwner computes the result from the owner of an existing ConfigMap. The garbage collector deletes one whose Job was deleted.
func checkOwner(configMap *corev1.ConfigMap, job *batchv1.Job) format.Result {
	for _, owner := range configMap.OwnerReferences {
		switch {
		case owner.UID == job.UID:
			return deliveredTo(job)
		case owner.Kind == "Job" && owner.Name == job.Name:
			return retrySoon("the ConfigMap %s/%s is of a Job that was deleted, and goes soon", configMap.Namespace, configMap.Name)
		}
	}
	return rejected("there is a ConfigMap %s/%s that is not of this batch: delete it and the Job of that name, and ask for a sync",
		configMap.Namespace, configMap.Name)
}

func deliveredTo(job *batchv1.Job) format.Result {
	return format.Result{Outcome: format.Delivered, Message: fmt.Sprintf("made the Job %s/%s", job.Namespace, job.Name)}
}

func rejected(message string, arguments ...any) format.Result {
	return format.Result{Outcome: format.Rejected, Message: fmt.Sprintf(message, arguments...)}
}

// retrySoon is the result when an object that is in the way is about to be deleted.
func retrySoon(message string, arguments ...any) format.Result {
	return format.Result{Outcome: format.Retry, Message: fmt.Sprintf(message, arguments...), RetryAfter: jobPollInterval}
}

// retry is the result for an error that may pass, such as an exceeded quota.
func (j *Job) retry(action, name string, err error) format.Result {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return format.Result{
		Outcome: format.Retry, Message: fmt.Sprintf("%s %s/%s: %s", action, j.spec.Namespace, name, err),
		RetryAfter: time.Duration(seconds) * time.Second,
	}
}
