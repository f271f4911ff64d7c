// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropAllocated removes the fields that the server or a controller fills in on objects of certain built-in types. Both
// the object and its metadata must have been opened.
func dropAllocated(object, metadata map[string]any, owned ownership) {
	spec := func() map[string]any { return open(object, "spec") }
	switch schema.FromAPIVersionAndKind(textAt(object, "apiVersion"), textAt(object, "kind")).GroupKind().String() {
	case "APIService.apiregistration.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io",
		"MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io":
		dropInjectedCABundle(object, metadata)
	case "ClusterRole.rbac.authorization.k8s.io":
		dropAggregatedRules(object)
	case "CronJob.batch":
		jobTemplate := open(spec(), "jobTemplate")
		dropNullCreation(jobTemplate)
		dropNullCreation(open(open(jobTemplate, "spec"), "template"))
	case "Deployment.apps", "DaemonSet.apps", "ReplicaSet.apps", "ReplicationController":
		dropNullCreation(open(spec(), "template"))
	case "Job.batch":
		dropFromJob(spec(), metadata)
	case "Namespace":
		dropFromNamespace(object, metadata)
	case "PersistentVolume":
		dropFromVolume(spec(), metadata)
	case "PersistentVolumeClaim":
		dropFromClaim(spec(), metadata)
	case "Pod":
		delete(spec(), "nodeName")
	case "PodTemplate":
		dropNullCreation(open(object, "template"))
	case "Secret":
		dropFromSecret(object, metadata)
	case "Service":
		dropFromService(spec(), owned)
	case "ServiceAccount":
		dropTokenSecrets(object, metadata)
	case "StatefulSet.apps":
		dropFromStatefulSet(spec())
	}
}

// dropNullCreation removes the null creationTimestamp that servers write into embedded objects, and their metadata when
// it holds nothing else.
func dropNullCreation(embedded map[string]any) {
	metadata := open(embedded, "metadata")
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	dropIfEmpty(embedded, "metadata")
}

// dropAggregatedRules removes the rules of an aggregated ClusterRole: a controller writes them.
func dropAggregatedRules(object map[string]any) {
	if len(mapAt(object, "aggregationRule")) > 0 {
		delete(object, "rules")
	}
}

// dropFromJob removes the generated selector and its labels. A Job with manualSelector keeps everything.
func dropFromJob(spec, metadata map[string]any) {
	template := open(spec, "template")
	if spec["manualSelector"] != true {
		if mapAt(spec, "selector", "matchLabels") != nil {
			dropKeys(open(spec, "selector"), "matchLabels", isJobLabel)
			dropIfEmpty(mapAt(spec, "selector"), "matchLabels")
			dropIfEmpty(spec, "selector")
		}
		dropKeys(metadata, "labels", isJobLabel)
		templateMetadata := open(template, "metadata")
		dropKeys(templateMetadata, "labels", isJobLabel)
		dropIfEmpty(templateMetadata, "labels")
	}
	dropNullCreation(template)
}

func isJobLabel(key string) bool {
	switch key {
	case "controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name":
		return true
	}
	return false
}

// dropFromNamespace removes the finalizer list, which is written through its own subresource, and the label that
// repeats the name.
func dropFromNamespace(object, metadata map[string]any) {
	delete(open(object, "spec"), "finalizers")
	dropIfEmpty(object, "spec")
	dropKeys(metadata, "labels", func(key string) bool { return key == "kubernetes.io/metadata.name" })
}

// dropFromVolume removes what binds a volume to one claim object: a recreated claim has another uid, and the volume
// would count as released.
func dropFromVolume(spec, metadata map[string]any) {
	claim := open(spec, "claimRef")
	delete(claim, "uid")
	delete(claim, "resourceVersion")
	dropKeys(metadata, "annotations", func(key string) bool { return key == "pv.kubernetes.io/bound-by-controller" })
}

// dropFromClaim removes the volume that a claim was bound to and the record of the binding. A volume that a user named
// stays: in that case the control plane does not annotate the claim as bound by its controller.
func dropFromClaim(spec, metadata map[string]any) {
	if mapAt(metadata, "annotations")["pv.kubernetes.io/bound-by-controller"] != nil {
		delete(spec, "volumeName")
	}
	dropKeys(metadata, "annotations", func(key string) bool {
		switch key {
		case "volume.kubernetes.io/storage-provisioner",
			"volume.beta.kubernetes.io/storage-provisioner",
			"volume.kubernetes.io/storage-resizer",
			"volume.kubernetes.io/selected-node":
			return true
		}
		return strings.HasPrefix(key, "pv.kubernetes.io/")
	})
}

// dropFromSecret removes the usage labels that the server sets on token Secrets. From a Secret of a ServiceAccount's
// token it removes the token itself, which the control plane fills in for the account of that cluster.
func dropFromSecret(object, metadata map[string]any) {
	dropKeys(metadata, "labels", func(key string) bool {
		return key == "kubernetes.io/legacy-token-last-used" || key == "kubernetes.io/legacy-token-invalid-since"
	})
	if textAt(object, "type") != serviceAccountToken {
		return
	}
	dropKeys(metadata, "annotations", func(key string) bool { return key == "kubernetes.io/service-account.uid" })
	dropKeys(object, "data", func(key string) bool { return key == "token" || key == "ca.crt" || key == "namespace" })
	dropIfEmpty(object, "data")
}

// dropFromService removes the allocated addresses and ports. A cluster IP is dropped even where a user chose it,
// because it belongs to this cluster's range. "None" makes a Service headless and stays.
func dropFromService(spec map[string]any, owned ownership) {
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	if spec["ipFamilyPolicy"] == "SingleStack" {
		delete(spec, "ipFamilyPolicy")
	}
	if !owned("f:spec", "f:ipFamilies") {
		delete(spec, "ipFamilies")
	}
	for _, port := range openEach(spec, "ports") {
		key := fmt.Sprintf(`k:{"port":%v,"protocol":"%v"}`, port["port"], port["protocol"])
		if !owned("f:spec", "f:ports", key, "f:nodePort") {
			delete(port, "nodePort")
		}
	}
}

// dropTokenSecrets removes from a ServiceAccount the token Secrets that older control planes generated, which are named
// after it. Secrets that a user listed stay.
func dropTokenSecrets(object, metadata map[string]any) {
	prefix := textAt(metadata, "name") + "-token-"
	keepItems(object, "secrets", func(item any) bool {
		reference, _ := item.(map[string]any)
		suffix, found := strings.CutPrefix(textAt(reference, "name"), prefix)
		return !found || len(suffix) != generatedSuffixLength || strings.ContainsAny(suffix, ".-")
	})
}

// generatedSuffixLength is the length of the random part that the API server appends to a generateName.
const generatedSuffixLength = 5

// dropFromStatefulSet removes the status and the null creationTimestamp that the server writes into claim templates.
func dropFromStatefulSet(spec map[string]any) {
	dropNullCreation(open(spec, "template"))
	for _, claim := range openEach(spec, "volumeClaimTemplates") {
		delete(claim, "status")
		dropNullCreation(claim)
	}
}
