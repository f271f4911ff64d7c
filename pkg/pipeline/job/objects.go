// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package job

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
	"github.com/configbutler/slipstream/pkg/pipeline/format"
)

const (
	// volume is the name of the volume with the batch.
	volume = "slipstream-batch"
	folder = "/etc/slipstream/batch"
	file   = "batch.json"
	// variable is the environment variable with the path of the batch.
	variable = "SLIPSTREAM_BATCH"
	// maxName leaves room for what Jobs append for their Pods, as CronJobs do for theirs.
	maxName = 52
	hashed  = 10
	// keptSeconds is how long a Job that has finished stays when the template does not say: batches are many.
	keptSeconds = 60 * 60
)

// name is that of a batch's Job: what people look for, and a hash that no other batch has.
func (s *Sink) name(batch string) string {
	sum := sha256.Sum256([]byte(s.source.Pipeline + "/" + s.source.Sink + "/" + batch))
	shown := s.source.Pipeline + "-" + s.source.Sink
	shown = strings.Trim(shown[:min(len(shown), maxName-hashed-1)], "-.")
	return shown + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// labels are what the Jobs of the sink are found by.
func (s *Sink) labels() map[string]string {
	return map[string]string{v1alpha1.LabelPipeline: s.source.Pipeline, v1alpha1.LabelSink: s.source.Sink}
}

// job is the Job of a batch: the template with nothing more than labels, what its containers need to find the batch, and the account
// that the sink names. So it fits wherever the template does, under the restricted security standard for Pods, too.
func (s *Sink) job(batch format.Batch) *batchv1.Job {
	template := s.template.DeepCopy()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name(batch.ID), Namespace: s.spec.Namespace,
			Labels: laidOver(template.Labels, s.labels()),
			Annotations: laidOver(template.Annotations, map[string]string{
				v1alpha1.AnnotationBatch: batch.ID, v1alpha1.AnnotationSequence: strconv.FormatInt(batch.Sequence, 10),
			}),
		},
		Spec: template.Spec,
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		job.Spec.TTLSecondsAfterFinished = new(int32(keptSeconds))
	}
	// Pods have the labels, too: pipelines tell of nothing that has them, or they would never come to an end.
	job.Spec.Template.Labels = laidOver(job.Spec.Template.Labels, s.labels())
	s.equip(&job.Spec.Template.Spec, job.Name)
	return job
}

// equip lets the containers of a Pod read the batch in a ConfigMap.
func (s *Sink) equip(pod *corev1.PodSpec, configMap string) {
	pod.ServiceAccountName = cmp.Or(s.spec.ServiceAccountName, "default")
	pod.DeprecatedServiceAccount = ""
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}},
	}})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			container := &containers[i]
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: folder, ReadOnly: true})
			// First, so that the variables of the template can be made of it.
			container.Env = append([]corev1.EnvVar{{Name: variable, Value: folder + "/" + file}}, container.Env...)
		}
	}
}

// configMap is what the Pods of a Job mount. It goes when the Job goes.
func (s *Sink) configMap(job *batchv1.Job, batch []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name, Namespace: job.Namespace, Labels: s.labels(),
			Annotations: map[string]string{
				v1alpha1.AnnotationBatch:    job.Annotations[v1alpha1.AnnotationBatch],
				v1alpha1.AnnotationSequence: job.Annotations[v1alpha1.AnnotationSequence],
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: job.Name, UID: job.UID,
			}},
		},
		Immutable: new(true),
		Data:      map[string]string{file: string(batch)},
	}
}

func laidOver(under, over map[string]string) map[string]string {
	all := maps.Clone(over)
	for key, value := range under {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	return all
}
