// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package job

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
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	pipelineformat "github.com/configbutler/slipstream/pkg/pipeline/format"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const (
	// lookAgain is how long a batch waits before it is asked again whether the Job before has finished.
	lookAgain = 5 * time.Second
	// maxShown is how many bytes of what an API server says are shown.
	maxShown = 500
)

// Sink makes a Job of each batch.
type Sink struct {
	cluster  kubernetes.Interface
	source   pipelineformat.Source
	spec     v1alpha1.JobSink
	template batchv1.JobTemplateSpec
}

var _ delivery.Sink = &Sink{}

// New returns a sink as the spec, which has its defaults, says.
func New(cluster kubernetes.Interface, source pipelineformat.Source, spec v1alpha1.JobSink) (*Sink, error) {
	s := &Sink{cluster: cluster, source: source, spec: spec}
	if err := json.Unmarshal(spec.Template.Raw, &s.template); err != nil {
		return nil, fmt.Errorf("read the template of Jobs: %w", err)
	}
	return s, nil
}

// Close does nothing: nothing is held open.
func (*Sink) Close() {}

// Deliver makes the Job of a batch and the ConfigMap that it mounts, or what there is not yet of the two. The batch is one part.
func (s *Sink) Deliver(ctx context.Context, batch pipelineformat.Batch, done delivery.Done) error {
	document, err := pipelineformat.Document(batch, s.source)
	if err != nil {
		return err
	}
	verdict := s.begin(ctx, batch, document)
	if verdict.Outcome == pipelineformat.Retry && ctx.Err() != nil {
		return ctx.Err()
	}
	verdict.Text = summary.Cut(summary.Line(verdict.Text), maxShown)
	if err := done(batch.Keys(), verdict); err != nil {
		return fmt.Errorf("note what became of batch %s: %w", batch.ID, err)
	}
	return nil
}

// Failure says why the newest Job that there is has failed. It is empty when that one runs or is complete.
func (s *Sink) Failure(ctx context.Context) (string, error) {
	jobs, err := s.history(ctx)
	if err != nil {
		return "", err
	}
	return jobs.failure(), nil
}

// begin goes on with the Job of a batch, or makes it.
func (s *Sink) begin(ctx context.Context, batch pipelineformat.Batch, document []byte) pipelineformat.Verdict {
	if size := len(file) + len(document); size > corev1.MaxSecretSize {
		return rejected("the batch takes %d bytes, and a ConfigMap at most %d: lower spec.batch.maxItems", size, corev1.MaxSecretSize)
	}
	name := s.name(batch.ID)
	job, err := s.cluster.BatchV1().Jobs(s.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.create(ctx, batch, document)
	case err != nil:
		return s.retry("read the Job", name, err)
	case !s.made(job, batch):
		return rejected("there is a Job %s/%s that is not of this batch: delete it, and ask for a sync", job.Namespace, job.Name)
	}
	return s.handOver(ctx, job, document)
}

// made is true of a Job that was made for a batch.
func (s *Sink) made(job *batchv1.Job, batch pipelineformat.Batch) bool {
	return labels.SelectorFromSet(s.labels()).Matches(labels.Set(job.Labels)) && job.Annotations[v1alpha1.AnnotationBatch] == batch.ID
}

// create makes the Job of a batch when its turn has come.
func (s *Sink) create(ctx context.Context, batch pipelineformat.Batch, document []byte) pipelineformat.Verdict {
	before, err := s.history(ctx)
	if err != nil {
		return pipelineformat.Verdict{Outcome: pipelineformat.Retry, Text: err.Error()}
	}
	if running := before.running(); running != nil && s.spec.ConcurrencyPolicy != v1alpha1.PipelineConcurrencyAllow {
		return pipelineformat.Verdict{
			Outcome: pipelineformat.Waiting, After: lookAgain, Text: fmt.Sprintf("waits for the Job %s/%s to finish", running.Namespace, running.Name),
		}
	}
	wanted := s.job(batch)
	job, err := s.cluster.BatchV1().Jobs(wanted.Namespace).Create(ctx, wanted, metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
	switch {
	case apierrors.IsInvalid(err):
		return rejected("the template makes no valid Job: %s", err)
	case err != nil:
		return s.retry("make the Job", wanted.Name, err)
	}
	verdict := s.handOver(ctx, job, document)
	if failure := before.failure(); failure != "" && verdict.Outcome == pipelineformat.Delivered {
		verdict.Text += "; " + failure
	}
	return verdict
}

// history reads which Jobs of the sink there are.
func (s *Sink) history(ctx context.Context) (history, error) {
	selector := labels.SelectorFromSet(s.labels()).String()
	list, err := s.cluster.BatchV1().Jobs(s.spec.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of the sink in namespace %s: %w", s.spec.Namespace, err)
	}
	return newHistory(list.Items), nil
}

// handOver makes the ConfigMap that a Job of ours mounts.
func (s *Sink) handOver(ctx context.Context, job *batchv1.Job, document []byte) pipelineformat.Verdict {
	configMaps := s.cluster.CoreV1().ConfigMaps(job.Namespace)
	if !finished(job) && job.DeletionTimestamp == nil {
		_, err := configMaps.Create(ctx, s.configMap(job, document), metav1.CreateOptions{FieldManager: v1alpha1.FieldManager})
		switch {
		case err == nil:
			return delivered(job)
		case !apierrors.IsAlreadyExists(err):
			return s.retry("make the ConfigMap", job.Name, err)
		}
	}
	found, err := configMaps.Get(ctx, job.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && finished(job):
		return rejected("the Job %s/%s has ended before it got its batch: ask for a sync", job.Namespace, job.Name)
	case apierrors.IsNotFound(err):
		return soon("waits for the Job %s/%s to go, which is being deleted and has not got its batch", job.Namespace, job.Name)
	case err != nil:
		return s.retry("read the ConfigMap", job.Name, err)
	}
	return heldBy(found, job)
}

// heldBy judges by whose the ConfigMap is that a Job mounts. The one of a Job that is gone goes by itself.
func heldBy(found *corev1.ConfigMap, job *batchv1.Job) pipelineformat.Verdict {
	for _, owner := range found.OwnerReferences {
		switch {
		case owner.UID == job.UID:
			return delivered(job)
		case owner.Kind == "Job" && owner.Name == job.Name:
			return soon("the ConfigMap %s/%s is of a Job that was deleted, and goes soon", found.Namespace, found.Name)
		}
	}
	return rejected("there is a ConfigMap %s/%s that is not of this batch: delete it and the Job of that name, and ask for a sync",
		found.Namespace, found.Name)
}

func delivered(job *batchv1.Job) pipelineformat.Verdict {
	return pipelineformat.Verdict{Outcome: pipelineformat.Delivered, Text: fmt.Sprintf("made the Job %s/%s", job.Namespace, job.Name)}
}

func rejected(format string, arguments ...any) pipelineformat.Verdict {
	return pipelineformat.Verdict{Outcome: pipelineformat.Rejected, Text: fmt.Sprintf(format, arguments...)}
}

// soon is the verdict on what others are about to clear away.
func soon(format string, arguments ...any) pipelineformat.Verdict {
	return pipelineformat.Verdict{Outcome: pipelineformat.Retry, Text: fmt.Sprintf(format, arguments...), After: lookAgain}
}

// retry is the verdict on an error that may pass, such as a quota that is used up.
func (s *Sink) retry(doing, name string, err error) pipelineformat.Verdict {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return pipelineformat.Verdict{
		Outcome: pipelineformat.Retry, Text: fmt.Sprintf("%s %s/%s: %s", doing, s.spec.Namespace, name, err),
		After: time.Duration(seconds) * time.Second,
	}
}
