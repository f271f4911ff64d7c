// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package transplant

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/manifest"
)

// staysBehind says why an object has no copy, empty if it may have one.
func staysBehind(content *unstructured.Unstructured) string {
	kind := content.GetKind()
	if kind == "Secret" && content.Object["type"] == string(corev1.SecretTypeServiceAccountToken) {
		return "token of a ServiceAccount"
	}
	if kind == "ServiceAccount" && len(listOf(content.Object["imagePullSecrets"])) > 0 {
		return ""
	}
	resource, _ := meta.UnsafeGuessKindToResource(content.GroupVersionKind())
	reason, _ := manifest.ClusterMade(resource.GroupResource(), content)
	return reason
}

// adapt changes a copy as its kind and the target ask for, in place. It says why there is no copy after all.
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
	case "Ingress.networking.k8s.io":
		return t.ingress(copied, spec)
	case "Service":
		t.service(copied, spec)
	case "ServiceAccount":
		t.account(copied.Object)
		// Without Secrets, the account that every namespace has is nothing to copy.
		return staysBehind(copied)
	default:
		return copied.GetKind() + " is no kind that is copied"
	}
	return ""
}

// pods lets pods look for others in the namespace of the copy where they looked in that of the source.
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
	namespaces := listOf(term["namespaces"])
	for i, namespace := range namespaces {
		if namespace == source {
			namespaces[i] = t.Namespace
		}
	}
}

// account leaves out Secrets that are not copied.
func (t Target) account(account map[string]any) {
	copied := func(item any) bool {
		name, _ := mapOf(item)["name"].(string)
		return !t.LeftBehind.Has(name)
	}
	for _, field := range [...]string{"imagePullSecrets", "secrets"} {
		keep(account, field, copied)
	}
}
