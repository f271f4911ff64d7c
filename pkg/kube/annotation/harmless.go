// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package annotation

import "k8s.io/apimachinery/pkg/runtime/schema"

// secret is the kind of which only harmless annotations are readable.
var secret = schema.GroupKind{Kind: "Secret"}

// IsHarmless reports whether an annotation of a Secret is known to hold a name or a switch and nothing of the Secret's
// content. Free text is not harmless: a description or a kubernetes.io/change-cause can quote anything.
func IsHarmless(key string) bool {
	switch key {
	case "argocd.argoproj.io/compare-options",
		"argocd.argoproj.io/sync-options",
		"argocd.argoproj.io/sync-wave",
		"cert-manager.io/certificate-name",
		"cert-manager.io/issuer-group",
		"cert-manager.io/issuer-kind",
		"cert-manager.io/issuer-name",
		"configbutler.ai/mirror",
		"helm.sh/resource-policy",
		"kubernetes.io/service-account.name",
		"kustomize.toolkit.fluxcd.io/force",
		"kustomize.toolkit.fluxcd.io/prune",
		"kustomize.toolkit.fluxcd.io/reconcile",
		"kustomize.toolkit.fluxcd.io/ssa",
		"meta.helm.sh/release-name",
		"meta.helm.sh/release-namespace":
		return true
	}
	return false
}

// Readable returns a copy of the annotations of an object of the given kind, without those that may repeat the object's
// content. It returns nil if none is left.
func Readable(kind schema.GroupKind, annotations map[string]string) map[string]string {
	var left map[string]string
	for key, value := range annotations {
		if HoldsConfiguration(key) || kind == secret && !IsHarmless(key) {
			continue
		}
		if left == nil {
			left = make(map[string]string, len(annotations))
		}
		left[key] = value
	}
	return left
}
