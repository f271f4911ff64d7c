// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	corev1 "k8s.io/api/core/v1"
)

// defaultAccount is the ServiceAccount of pods that name none. It exists in every namespace.
const defaultAccount = "default"

// pod adds the references of a pod.
func (f *finder) pod(pod *corev1.PodSpec, at path) {
	f.accountOf(pod, at)
	for _, secret := range pod.ImagePullSecrets {
		f.add(Secret, secret.Name, at.item("imagePullSecrets", secret.Name), use{})
	}
	f.add(Service, pod.Subdomain, at.field("subdomain"), use{optional: new(true)})
	for i := range pod.InitContainers {
		f.container(&pod.InitContainers[i], at.item("initContainers", pod.InitContainers[i].Name))
	}
	for i := range pod.Containers {
		f.container(&pod.Containers[i], at.item("containers", pod.Containers[i].Name))
	}
	for i := range pod.EphemeralContainers {
		container := corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
		f.container(&container, at.item("ephemeralContainers", container.Name))
	}
	for i := range pod.Volumes {
		f.volume(&pod.Volumes[i].VolumeSource, at.item("volumes", pod.Volumes[i].Name))
	}
}

// accountOf adds the ServiceAccount of a pod. Servers write both the deprecated field and the current one.
func (f *finder) accountOf(pod *corev1.PodSpec, at path) {
	f.add(ServiceAccount, pod.ServiceAccountName, at.field("serviceAccountName"), use{})
	f.add(ServiceAccount, pod.DeprecatedServiceAccount, at.field("serviceAccount"), use{})
	if pod.ServiceAccountName == "" && pod.DeprecatedServiceAccount == "" {
		f.add(ServiceAccount, defaultAccount, at.field("serviceAccountName"), use{optional: new(true)})
	}
}

func (f *finder) container(container *corev1.Container, at path) {
	for i, from := range container.EnvFrom {
		at := at.index("envFrom", i)
		if ref := from.ConfigMapRef; ref != nil {
			f.add(ConfigMap, ref.Name, at.field("configMapRef"), use{optional: ref.Optional})
		}
		if ref := from.SecretRef; ref != nil {
			f.add(Secret, ref.Name, at.field("secretRef"), use{optional: ref.Optional})
		}
	}
	for _, env := range container.Env {
		if env.ValueFrom == nil {
			continue
		}
		at := at.item("env", env.Name).field("valueFrom")
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			f.add(ConfigMap, ref.Name, at.field("configMapKeyRef"), use{[]string{ref.Key}, ref.Optional})
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			f.add(Secret, ref.Name, at.field("secretKeyRef"), use{[]string{ref.Key}, ref.Optional})
		}
	}
}
