// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// omitReason returns why an object is not copied, empty if it can be.
func omitReason(content *unstructured.Unstructured) string {
	kind := content.GetKind()
	if kind == "Secret" && content.Object["type"] == string(corev1.SecretTypeServiceAccountToken) {
		return "token of a ServiceAccount"
	}
	if kind == "ServiceAccount" && len(listOf(content.Object["imagePullSecrets"])) > 0 {
		return ""
	}
	resource, _ := meta.UnsafeGuessKindToResource(content.GroupVersionKind())
	reason, _ := manifest.ClusterGenerated(resource.GroupResource(), content)
	return reason
}

// adapt changes a copy in place as its kind and the target require. It returns a reason if the object is omitted after
// all.
func (t Target) adapt(copied *unstructured.Unstructured, source string) string {
	spec := mapOf(copied.Object["spec"])
	switch copied.GroupVersionKind().GroupKind().String() {
	case "ConfigMap", "Secret":
	case "DaemonSet.apps", "Job.batch":
		t.pods(spec, source)
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps":
		t.pods(spec, source)
		if t.OneReplica {
			atMostOne(spec, "replicas")
		}
	case "CronJob.batch":
		t.pods(mapOf(mapOf(spec["jobTemplate"])["spec"]), source)
		if t.SuspendCronJobs && spec != nil {
			spec["suspend"] = true
		}
	case "HorizontalPodAutoscaler.autoscaling":
		if t.OneReplica {
			atMostOne(spec, "minReplicas")
			atMostOne(spec, "maxReplicas")
		}
	case "PodDisruptionBudget.policy":
		if t.OneReplica && spec != nil {
			delete(spec, "minAvailable")
			spec["maxUnavailable"] = int64(1)
		}
	case "Gateway.gateway.networking.k8s.io":
		return t.gateway(copied, spec, source)
	case "GRPCRoute.gateway.networking.k8s.io", "HTTPRoute.gateway.networking.k8s.io":
		return t.route(copied, spec, source)
	case "ReferenceGrant.gateway.networking.k8s.io":
		t.moveReferences(spec, source)
	case "Ingress.networking.k8s.io":
		return t.ingress(copied, spec)
	case "NetworkPolicy.networking.k8s.io":
		t.policy(spec, source)
	case "Service":
		t.service(copied, spec)
	case "ServiceAccount":
		t.account(copied.Object)
		// The default ServiceAccount is only copied for its Secrets.
		return omitReason(copied)
	default:
		if t.Custom != nil && t.Custom(copied.GroupVersionKind().GroupKind()) {
			return ""
		}
		return copied.GetKind() + " is no kind that is copied"
	}
	return ""
}

// pods replaces the source's namespace by that of the copy in pod affinities.
func (t Target) pods(spec map[string]any, source string) {
	affinity := mapOf(mapOf(mapOf(spec["template"])["spec"])["affinity"])
	for _, kind := range [...]string{"podAffinity", "podAntiAffinity"} {
		terms := mapOf(affinity[kind])
		for _, term := range listOf(terms["requiredDuringSchedulingIgnoredDuringExecution"]) {
			t.rename(mapOf(term), source)
		}
		for _, weighted := range listOf(terms["preferredDuringSchedulingIgnoredDuringExecution"]) {
			t.rename(mapOf(mapOf(weighted)["podAffinityTerm"]), source)
		}
	}
}

func (t Target) rename(term map[string]any, source string) {
	t.replace(listOf(term["namespaces"]), source)
	t.moveSelector(mapOf(term["namespaceSelector"]), source)
}

// replace replaces the source's namespace by that of the copy.
func (t Target) replace(namespaces []any, source string) {
	for i, namespace := range namespaces {
		if namespace == source {
			namespaces[i] = t.Namespace
		}
	}
}

// moveSelector replaces the source by the namespace of the copy in a namespace selector that uses the label of the
// namespace's name. A selector that excludes the source excludes both: the copy of a policy must not admit the source.
// Other labels stay, since it is not known here which namespaces have them.
func (t Target) moveSelector(selector map[string]any, source string) {
	if labels := mapOf(selector["matchLabels"]); labels[corev1.LabelMetadataName] == source {
		labels[corev1.LabelMetadataName] = t.Namespace
	}
	for _, item := range listOf(selector["matchExpressions"]) {
		requirement := mapOf(item)
		values := listOf(requirement["values"])
		switch {
		case requirement["key"] != corev1.LabelMetadataName:
		case requirement["operator"] != string(metav1.LabelSelectorOpNotIn):
			t.replace(values, source)
		case slices.Contains(values, any(source)) && !slices.Contains(values, any(t.Namespace)):
			requirement["values"] = append(values, t.Namespace)
		}
	}
}

// account removes references to Secrets that are not copied.
func (t Target) account(account map[string]any) {
	copied := func(item any) bool {
		name, _ := mapOf(item)["name"].(string)
		return !t.OmittedSecrets.Has(name)
	}
	for _, field := range [...]string{"imagePullSecrets", "secrets"} {
		keep(account, field, copied)
	}
}
