// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

const (
	// batchVolume, batchFolder and batchFile are where the containers of Jobs find a batch.
	batchVolume, batchFolder, batchFile = "slipstream-batch", "/etc/slipstream/batch", "batch.json"
	// worker is a sink that starts Jobs: its namespace, and the field name of its containers.
	worker = `
  sinks:
  - name: worker
    retry: {backoff: 100ms, maxBackoff: 1s}
    job:
      namespace: %s
      serviceAccountName: loader
      template:
        metadata: {labels: {team: search}}
        spec:
          backoffLimit: 0
          template:
            spec:
              restartPolicy: Never
              initContainers: [{name: fetch, image: loader}]
              %s: [{name: load, image: loader, env: [{name: INPUT, value: $(SLIPSTREAM_BATCH)}]}]`
)

// testJobs tests a pipeline that starts Jobs.
func (s *testCluster) testJobs(t *testing.T) {
	c := s.newFixture(t, "employed")
	c.allowJobs(t)
	c.define(t, widgets)
	lines := func(containers string) []string {
		// The pipeline must not send its own Jobs.
		instances := fmt.Sprintf("instances: {resources: [widgets.%s, jobs.batch, pods]}", c.group)
		return []string{"debounce: 0s\n  batch: {maxItems: 1, maxWait: 0s}", noDefinitions, instances + fmt.Sprintf(worker, c.name, containers)}
	}
	// Until kube-apiserver has observed eve's RoleBinding, the pipeline is refused for another reason.
	mirrortest.Eventually(t, "a template with an unknown field is refused", func(ctx context.Context) error {
		_, err := c.apply(ctx, s.eve, lines("container")...)
		if err == nil {
			t.Fatal("template with an unknown field was accepted")
		}
		if message := err.Error(); !strings.Contains(message, "spec.sinks[0].job.template") || !strings.Contains(message, "container") {
			return err
		}
		return nil
	})
	c.readyPipeline(t, lines("containers")...)

	created := c.create(t, "first", "tier=front")
	job := c.job(t, 1)
	c.expectTemplate(t, &job)
	c.expectBatch(t, &job, c.upserted(created, `{"tier":"front"}`))
	c.remove(t, "first")
	c.waitForPending(t, 1)
	if jobs := c.jobs(t); len(jobs) != 1 {
		t.Errorf("%d Jobs while the first one runs, want 1", len(jobs))
	}
	c.endJob(t, &job, corev1.PodSucceeded)
	job = c.job(t, 2)
	c.expectBatch(t, &job, `"upserts":[],"deletes":[{"apiVersion":"employed.example.com/v1","kind":"Widget","namespace":"employed",`+
		`"name":"first"}]}`)

	c.create(t, "second")
	c.endJob(t, &job, corev1.PodFailed)
	job = c.job(t, 3)
	c.waitForSink(t, "worker", "has delivered everything", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Pending != 0 || sink.Delivered != 1 {
			return fmt.Errorf("%d pending, %d delivered", sink.Pending, sink.Delivered)
		}
		return nil
	})
	c.Delete(t, c.name, "job/"+job.Name)
	mirrortest.Eventually(t, "the batch is deleted with its Job", func(ctx context.Context) error {
		_, err := s.admin.Client.CoreV1().ConfigMaps(c.name).Get(ctx, job.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
}

// allowJobs creates a service account for Jobs, and grants the server and eve the permissions to start Jobs.
func (c *fixture) allowJobs(t *testing.T) {
	t.Helper()
	c.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: loader, namespace: %s}}\n---\n", c.name)+
		people.In(c.name, people.Jobs, people.Server)+people.In(c.name, "admin", c.eve.Name))
}

// upserted returns the end of a batch with one new widget.
func (c *fixture) upserted(created *unstructured.Unstructured, labels string) string {
	return fmt.Sprintf(`"upserts":[{"apiVersion":"%s/v1","kind":"Widget","namespace":%q,"name":%q,`+
		`"uid":%q,"labels":%s,"annotations":{},"createdAt":%q,"updatedAt":%q}],"deletes":[]}`, c.group, c.name, created.GetName(),
		created.GetUID(), labels, timestamp(created.GetCreationTimestamp()), timestamp(updated(created)))
}

// jobs returns the Jobs in the namespace of the fixture, oldest batch first.
func (c *fixture) jobs(t *testing.T) []batchv1.Job {
	t.Helper()
	list, err := c.admin.Client.BatchV1().Jobs(c.name).List(t.Context(), metav1.ListOptions{
		LabelSelector: v1alpha1.LabelPipeline + "=" + c.name,
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int {
		return cmp.Compare(a.Annotations[v1alpha1.AnnotationSequence], b.Annotations[v1alpha1.AnnotationSequence])
	})
	return list.Items
}

// job waits for a number of Jobs, and returns the last one.
func (c *fixture) job(t *testing.T, count int) batchv1.Job {
	t.Helper()
	var jobs []batchv1.Job
	mirrortest.Eventually(t, fmt.Sprintf("%d Jobs", count), func(context.Context) error {
		if jobs = c.jobs(t); len(jobs) < count {
			return fmt.Errorf("%d Jobs", len(jobs))
		}
		return nil
	})
	return jobs[count-1]
}

// expectTemplate expects a Job to match the template, with the batch in each container.
func (c *fixture) expectTemplate(t *testing.T, job *batchv1.Job) {
	t.Helper()
	if job.Labels["team"] != "search" || job.Labels[v1alpha1.LabelSink] != "worker" || job.Annotations[v1alpha1.AnnotationBatch] == "" {
		t.Errorf("labels %v and annotations %v of the Job", job.Labels, job.Annotations)
	}
	pod := job.Spec.Template.Spec
	if pod.ServiceAccountName != "loader" {
		t.Errorf("service account of the Job = %s", pod.ServiceAccountName)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Name != batchVolume || pod.Volumes[0].ConfigMap == nil ||
		pod.Volumes[0].ConfigMap.Name != job.Name {
		t.Errorf("volumes of the Job = %+v", pod.Volumes)
	}
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		mounts, variable := container.VolumeMounts, container.Env
		if len(mounts) != 1 || mounts[0].Name != batchVolume || mounts[0].MountPath != batchFolder || !mounts[0].ReadOnly {
			t.Errorf("volume mounts of %s = %+v", container.Name, mounts)
		}
		if len(variable) == 0 || variable[0].Name != "SLIPSTREAM_BATCH" || variable[0].Value != batchFolder+"/"+batchFile {
			t.Errorf("variables of %s = %+v", container.Name, variable)
		}
	}
}

// expectBatch expects a Job to have a batch with this end.
func (c *fixture) expectBatch(t *testing.T, job *batchv1.Job, ending string) {
	t.Helper()
	var batch *corev1.ConfigMap
	mirrortest.Eventually(t, "the Job has its batch", func(ctx context.Context) (err error) {
		batch, err = c.admin.Client.CoreV1().ConfigMaps(c.name).Get(ctx, job.Name, metav1.GetOptions{})
		return err
	})
	if owners := batch.OwnerReferences; len(owners) != 1 || owners[0].UID != job.UID || owners[0].Kind != "Job" {
		t.Errorf("owners of the batch = %+v", owners)
	}
	want := fmt.Sprintf(`{"pipeline":%q,"sink":"worker","id":%q,"sequence":%s,"kind":"Instance",%s`, c.name,
		job.Annotations[v1alpha1.AnnotationBatch], job.Annotations[v1alpha1.AnnotationSequence], ending)
	if got := batch.Data[batchFile]; got != want {
		t.Errorf("the batch is\n%s\nwant\n%s", got, want)
	}
}

// endJob sets the phase of a Job's Pod, because there is no kubelet.
func (c *fixture) endJob(t *testing.T, job *batchv1.Job, phase corev1.PodPhase) {
	t.Helper()
	mirrortest.Eventually(t, "the Job ends", func(ctx context.Context) error {
		all := c.admin.Client.CoreV1().Pods(c.name)
		pods, err := all.List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			patch := fmt.Sprintf(`{"status":{"phase":%q}}`, phase)
			if _, err := all.Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
		}
		now, err := c.admin.Client.BatchV1().Jobs(c.name).Get(ctx, job.Name, metav1.GetOptions{})
		if err == nil && now.Status.Succeeded+now.Status.Failed == 0 {
			err = fmt.Errorf("Job has not ended, %d Pods", len(pods.Items))
		}
		return err
	})
}
