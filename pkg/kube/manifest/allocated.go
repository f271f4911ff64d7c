// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropAllocated removes what the server or a controller fills in on objects of certain built-in types. Both the object
// and its metadata must have been opened.
func dropAllocated(object, metadata map[string]any, asked ownership) {
	spec := func() map[string]any { return open(object, "spec") }
	switch schema.FromAPIVersionAndKind(textAt(object, "apiVersion"), textAt(object, "kind")).GroupKind().String() {
	case "APIService.apiregistration.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io",
		"MutatingWebhookConfiguration.admissionregistration.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io":
		dropInjectedAuthority(object, metadata)
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
		dropFromService(spec(), asked)
	case "ServiceAccount":
		dropTokenSecrets(object, metadata)
	case "StatefulSet.apps":
		dropFromStatefulSet(spec())
	}
}

// dropNullCreation removes the creation time that servers write as null into embedded objects, and their metadata when
// nothing else is in it.
func dropNullCreation(embedded map[string]any) {
	metadata := open(embedded, "metadata")
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	dropIfEmpty(embedded, "metadata")
}

// dropAggregatedRules removes the rules of a ClusterRole that is put together from others: a controller writes them.
func dropAggregatedRules(object map[string]any) {
	if len(mapAt(object, "aggregationRule")) > 0 {
		delete(object, "rules")
	}
}

// dropFromJob removes the selector that the server made up and the labels that go with it. A Job that brings its own
// selector keeps everything.
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

// dropFromNamespace removes the finalizer list that is written through its own subresource, and the label that repeats
// the name.
func dropFromNamespace(object, metadata map[string]any) {
	delete(open(object, "spec"), "finalizers")
	dropIfEmpty(object, "spec")
	dropKeys(metadata, "labels", func(key string) bool { return key == "kubernetes.io/metadata.name" })
}

// dropFromVolume removes what binds a volume to one claim object: a claim made anew has another uid, and the volume
// would count as released.
func dropFromVolume(spec, metadata map[string]any) {
	claim := open(spec, "claimRef")
	delete(claim, "uid")
	delete(claim, "resourceVersion")
	dropKeys(metadata, "annotations", func(key string) bool { return key == "pv.kubernetes.io/bound-by-controller" })
}

// dropFromClaim removes the volume that a claim was bound to and the record of its binding. A volume that a user has named stays: then
// the control plane does not write that it was bound by its controller.
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

// dropFromSecret removes the use marks that the server leaves on token Secrets and, from a Secret that asks for a
// ServiceAccount's token, the token itself: the control plane fills it in for whatever account is there.
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

// dropFromService removes the addresses and ports that were allocated for a Service. A cluster address is dropped even
// where a user chose it, for it is one of this cluster's range; "None" makes a Service headless and stays.
func dropFromService(spec map[string]any, asked ownership) {
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	if spec["ipFamilyPolicy"] == "SingleStack" {
		delete(spec, "ipFamilyPolicy")
	}
	if !asked("f:spec", "f:ipFamilies") {
		delete(spec, "ipFamilies")
	}
	for _, port := range openEach(spec, "ports") {
		key := fmt.Sprintf(`k:{"port":%v,"protocol":"%v"}`, port["port"], port["protocol"])
		if !asked("f:spec", "f:ports", key, "f:nodePort") {
			delete(port, "nodePort")
		}
	}
}

// dropTokenSecrets removes from a ServiceAccount the token Secrets that older control planes made for it, which are
// named after it. Secrets that a user listed stay.
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

// dropFromStatefulSet removes the status and the null creation time that the server writes into claim templates.
func dropFromStatefulSet(spec map[string]any) {
	dropNullCreation(open(spec, "template"))
	for _, claim := range openEach(spec, "volumeClaimTemplates") {
		delete(claim, "status")
		dropNullCreation(claim)
	}
}
