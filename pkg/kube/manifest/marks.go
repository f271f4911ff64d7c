// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
)

// dropKeys removes the keys that drop names from the map at field, which is copied only when it has one.
func dropKeys(parent map[string]any, field string, drop func(key string) bool) {
	var opened map[string]any
	for key := range mapAt(parent, field) {
		if !drop(key) {
			continue
		}
		if opened == nil {
			opened = open(parent, field)
		}
		delete(opened, key)
	}
}

// isRuntimeAnnotation names the annotations that record what the cluster, kubectl or a GitOps tool did, copies of the
// object among them. Annotations by which a person directs such a tool (kustomize.toolkit.fluxcd.io/prune,
// argocd.argoproj.io/sync-options) are content.
func isRuntimeAnnotation(key string) bool {
	switch key {
	case "deployment.kubernetes.io/revision",
		"deployment.kubernetes.io/revision-history",
		"deployment.kubernetes.io/desired-replicas",
		"deployment.kubernetes.io/max-replicas",
		"deprecated.daemonset.template.generation",
		"batch.kubernetes.io/job-tracking",
		"endpoints.kubernetes.io/last-change-trigger-time",
		"argocd.argoproj.io/tracking-id",
		"argocd.argoproj.io/installation-id",
		"kustomize.toolkit.fluxcd.io/checksum",
		"reconcile.fluxcd.io/requestedAt",
		"config.k8s.io/owning-inventory":
		return true
	}
	return strings.HasPrefix(key, "control-plane.alpha.") ||
		strings.HasPrefix(key, "autoscaling.alpha.") ||
		strings.HasPrefix(key, "objectset.rio.cattle.io/") ||
		annotation.HoldsConfiguration(key)
}

// isDirection names the values by which a person keeps a tool from copying the object into an annotation: such an
// annotation holds no copy. KubeVela reads these two.
func isDirection(key string, value any) bool {
	return key == "app.oam.dev/last-applied-configuration" && (value == "-" || value == "skip")
}

// isScalingSpec names the annotations that carry what autoscaling/v1 has no fields for: there they are the spec.
func isScalingSpec(object map[string]any, annotation string) bool {
	switch annotation {
	case "autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior":
		return textAt(object, "apiVersion") == "autoscaling/v1"
	}
	return false
}

// isRuntimeLabel names the labels by which GitOps tools find their objects again. app.kubernetes.io/instance is not
// among them: Argo CD can be told to track by it, but charts set it too, selectors use it, and whose it is cannot be
// seen from the object.
func isRuntimeLabel(key string) bool {
	switch key {
	case "argocd.argoproj.io/instance",
		"kustomize.toolkit.fluxcd.io/name",
		"kustomize.toolkit.fluxcd.io/namespace",
		"kustomize.toolkit.fluxcd.io/checksum",
		"helm.toolkit.fluxcd.io/name",
		"helm.toolkit.fluxcd.io/namespace",
		"applyset.kubernetes.io/part-of",
		"objectset.rio.cattle.io/hash":
		return true
	}
	return false
}
