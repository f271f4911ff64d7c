// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

const (
	batchVolume    = "slipstream-batch"
	batchMountPath = "/etc/slipstream/batch"
	batchFile      = "batch.json"
	// batchVariable is the environment variable with the path of the batch.
	batchVariable = "SLIPSTREAM_BATCH"
	// maxJobName leaves room for the suffix that the Job controller appends to the names of Pods, like the limit for CronJobs.
	maxJobName = 52
	hashLength = 10
	// defaultJobTTL is how many seconds a finished Job is kept when the template does not set it. It is short because every batch makes a Job.
	defaultJobTTL = 60 * 60
)

// jobName returns the name of a batch's Job: the names of the pipeline and the sink, and a hash that is unique to the batch.
func (j *Job) jobName(batch string) string {
	sum := sha256.Sum256([]byte(j.source.Pipeline + "/" + j.source.Sink + "/" + batch))
	readable := j.source.Pipeline + "-" + j.source.Sink
	readable = strings.Trim(readable[:min(len(readable), maxJobName-hashLength-1)], "-.")
	return readable + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// labels returns the labels by which the Jobs of the sink are selected.
func (j *Job) labels() map[string]string {
	return map[string]string{v1alpha1.LabelPipeline: j.source.Pipeline, v1alpha1.LabelSink: j.source.Sink}
}

// job returns the Job of a batch. It adds only labels, annotations, the batch's volume and the service account to the template, so that a
// template which satisfies the restricted Pod security standard still does.
func (j *Job) job(batch item.Batch) *batchv1.Job {
	template := j.template.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: j.jobName(batch.ID), Namespace: j.spec.Namespace,
			Labels: overlay(template.Labels, j.labels()),
			Annotations: overlay(template.Annotations, map[string]string{
				v1alpha1.AnnotationBatch: batch.ID, v1alpha1.AnnotationSequence: strconv.FormatInt(batch.Sequence, 10),
			}),
		},
		Spec: template.Spec,
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		job.Spec.TTLSecondsAfterFinished = new(int32(defaultJobTTL))
	}
	// Pipelines ignore objects with these labels. Without them on Pods, each Job would cause a batch, and that another Job, without end.
	job.Spec.Template.Labels = overlay(job.Spec.Template.Labels, j.labels())
	j.mountBatch(&job.Spec.Template.Spec, job.Name)
	return job
}

// mountBatch mounts the ConfigMap with the batch in all containers of a Pod, and sets its service account.
func (j *Job) mountBatch(pod *corev1.PodSpec, configMap string) {
	pod.ServiceAccountName = cmp.Or(j.spec.ServiceAccountName, "default")
	pod.DeprecatedServiceAccount = ""
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: batchVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
	}})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			container := &containers[i]
			container.VolumeMounts = append(container.VolumeMounts,
				corev1.VolumeMount{Name: batchVolume, MountPath: batchMountPath, ReadOnly: true})
			// It comes first, so that variables of the template can refer to it.
			container.Env = append([]corev1.EnvVar{{Name: batchVariable, Value: batchMountPath + "/" + batchFile}}, container.Env...)
		}
	}
}

// configMap returns the ConfigMap that the Pods of a Job mount. The Job owns it.
func (j *Job) configMap(job *batchv1.Job, batch []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, Labels: j.labels(),
			Annotations: map[string]string{
				v1alpha1.AnnotationBatch:    job.Annotations[v1alpha1.AnnotationBatch],
				v1alpha1.AnnotationSequence: job.Annotations[v1alpha1.AnnotationSequence],
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
			}},
		},
		Immutable: new(true),
		Data:      map[string]string{batchFile: string(batch)},
	}
}

// overlay returns the union of two maps, in which the values of over win.
func overlay(under, over map[string]string) map[string]string {
	all := maps.Clone(under)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}
