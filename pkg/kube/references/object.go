// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// statefulSet adds the Service that names the pods, which start without it, too, and the sources of the claim
// templates.
func (f *finder) statefulSet(spec *appsv1.StatefulSetSpec) {
	at := path{}.field("spec")
	f.add(Service, spec.ServiceName, at.field("serviceName"), use{optional: new(true)})
	for i := range spec.VolumeClaimTemplates {
		f.claim(&spec.VolumeClaimTemplates[i].Spec, at.index("volumeClaimTemplates", i).field("spec"))
	}
}

// account adds the Secrets of a ServiceAccount. The list of mountable Secrets only permits them, so they are optional.
func (f *finder) account(account *corev1.ServiceAccount) {
	for _, secret := range account.Secrets {
		f.add(Secret, secret.Name, path{}.item("secrets", secret.Name), use{optional: new(true)})
	}
	for i, secret := range account.ImagePullSecrets {
		f.add(Secret, secret.Name, path{}.index("imagePullSecrets", i), use{})
	}
}

// ingress adds the Services that an Ingress leads to and the Secrets with its certificates.
func (f *finder) ingress(spec *networkingv1.IngressSpec) {
	at := path{}.field("spec")
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

func (f *finder) backend(backend *networkingv1.IngressBackend, at path) {
	if backend != nil && backend.Service != nil {
		f.add(Service, backend.Service.Name, at.field("service"), use{})
	}
}
