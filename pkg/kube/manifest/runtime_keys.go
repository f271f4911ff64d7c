// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/annotation"
)

// dropKeys removes the keys that drop accepts from the map at field. The map is copied only if it has such a key.
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

// isRuntimeAnnotation reports whether an annotation records what the cluster, kubectl or a GitOps tool did, including
// copies of the object. Annotations by which a user configures such a tool (kustomize.toolkit.fluxcd.io/prune,
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
		"config.k8s.io/owning-inventory",
		"kubernetes.io/change-cause", // Why the last change was made: the history and the commit have it.
		"configbutler.ai/reason":
		return true
	}
	return strings.HasPrefix(key, "control-plane.alpha.") ||
		strings.HasPrefix(key, "autoscaling.alpha.") ||
		strings.HasPrefix(key, "objectset.rio.cattle.io/") ||
		annotation.HoldsConfiguration(key)
}

// isCopyOptOut reports whether an annotation's value stops a tool from copying the object into it. Such an annotation
// holds no copy. KubeVela reads these two values.
func isCopyOptOut(key string, value any) bool {
	return key == "app.oam.dev/last-applied-configuration" && (value == "-" || value == "skip")
}

// isScalingSpec reports whether an annotation holds the part of the spec that autoscaling/v1 has no fields for.
func isScalingSpec(object map[string]any, annotation string) bool {
	switch annotation {
	case "autoscaling.alpha.kubernetes.io/metrics", "autoscaling.alpha.kubernetes.io/behavior":
		return textAt(object, "apiVersion") == "autoscaling/v1"
	}
	return false
}

// isRuntimeLabel reports whether GitOps tools use a label to find their objects. app.kubernetes.io/instance is not
// among them: Argo CD can be configured to track by it, but charts set it too and selectors use it, and the object does
// not show which is the case.
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
