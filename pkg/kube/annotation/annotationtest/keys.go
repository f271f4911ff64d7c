// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package annotationtest lists annotation keys for tests of what leaves the cluster.
package annotationtest

// Configurations returns keys under which tools are known to store a copy of the object or a part of it.
func Configurations() []string {
	return []string{
		"kubectl.kubernetes.io/last-applied-configuration",
		"app.oam.dev/last-applied-configuration",
		"apps.open-cluster-management.io/last-applied-config",
		"banzaicloud.com/last-applied",
		"configmanagement.gke.io/declared-config",
		"configsync.gke.io/declared-fields",
		"consul.hashicorp.com/original-pod",
		"debug.werf.io/repair-patch",
		"debug.werf.io/repair-patch-errors",
		"dev.okteto.com/deployment",
		"dev.okteto.com/statefulset",
		"example.com/lastAppliedManifest",
		"flagger.kubernetes.io/original-configuration",
		"hazelcast.com/last-successful-spec",
		"kapp.k14s.io/original",
		"kapp.k14s.io/original-diff",
		"kapp.k14s.io/original-diff-full",
		"kapp.k14s.io/original-diff-md5",
		"kopf.dev/last-handled-configuration",
		"kopf.zalando.org/last-handled-configuration",
		"kopf.zalando.org/last-handled-configuration-ofDRS",
		"ksonnet.io/managed",
		"kudo.dev/last-applied-instance-state",
		"mongodb.com/v1.lastSuccessfulConfiguration",
		"objectset.rio.cattle.io/applied",
		"openshift.io/encoded-deployment-config",
		"operator.cloud.crate.io/last",
		"orkestra.orkspace.io/previous-spec",
		"percona.com/last-config-hash",
		"qbec.io/last-applied",
		"rollouts.kruise.io/original-spec-configuration",
	}
}

// Harmless returns the annotation keys of a Secret that are readable.
func Harmless() []string {
	return []string{
		"argocd.argoproj.io/compare-options",
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
		"meta.helm.sh/release-namespace",
	}
}

// Others returns keys that are unknown or hold free text. In a Secret they may quote its content.
func Others() []string {
	return []string{
		"description", "example.com/description", "example.com/made-up", "example.com/change-cause", "made-up",
		"reconcile.external-secrets.io/data-hash",
	}
}
