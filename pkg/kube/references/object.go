// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// statefulSet takes down the Service that gives pods their names, without which they start all the same, and what the templates of
// claims begin with.
func (f *finder) statefulSet(spec *appsv1.StatefulSetSpec) {
	at := place{}.field("spec")
	f.add(Service, spec.ServiceName, at.field("serviceName"), use{optional: new(true)})
	for i := range spec.VolumeClaimTemplates {
		f.claim(&spec.VolumeClaimTemplates[i].Spec, at.index("volumeClaimTemplates", i).field("spec"))
	}
}

// account takes down the Secrets of a ServiceAccount. The list of those that pods may mount allows; it needs nothing to be
// there.
func (f *finder) account(account *corev1.ServiceAccount) {
	for _, secret := range account.Secrets {
		f.add(Secret, secret.Name, place{}.item("secrets", secret.Name), use{optional: new(true)})
	}
	for i, secret := range account.ImagePullSecrets {
		f.add(Secret, secret.Name, place{}.index("imagePullSecrets", i), use{})
	}
}

// ingress takes down the Services that an Ingress leads to and the Secrets with its certificates.
func (f *finder) ingress(spec *networkingv1.IngressSpec) {
	at := place{}.field("spec")
	f.backend(spec.DefaultBackend, at.field("defaultBackend"))
	for i, rule := range spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		at := at.index("rules", i).field("http")
		for j := range rule.HTTP.Paths {
			f.backend(&rule.HTTP.Paths[j].Backend, at.index("paths", j).field("backend"))
		}
	}
	for i, tls := range spec.TLS {
		f.add(Secret, tls.SecretName, at.index("tls", i).field("secretName"), use{})
	}
}

func (f *finder) backend(backend *networkingv1.IngressBackend, at place) {
	if backend != nil && backend.Service != nil {
		f.add(Service, backend.Service.Name, at.field("service"), use{})
	}
}
