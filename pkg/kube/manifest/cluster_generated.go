// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serviceAccountToken is the type of Secrets that hold a ServiceAccount's token.
const serviceAccountToken = "kubernetes.io/service-account-token" //nolint:gosec // the name of a type, no credential

const (
	// ownGroup is the API group of this server's kinds.
	ownGroup = "configbutler.ai"
	// helmRelease is the name prefix of the Secrets and ConfigMaps in which Helm stores releases.
	helmRelease = "sh.helm.release.v1."
	// controllerManager is the field manager of Kubernetes' own controllers.
	controllerManager = "kube-controller-manager"
	// endpointsManagedBy is the label by which Kubernetes' controller marks its Endpoints, with the value
	// endpointsController.
	endpointsManagedBy  = "endpoints.kubernetes.io/managed-by"
	endpointsController = "endpoint-controller"
	// sliceManagedBy is the label that names the manager of an EndpointSlice.
	sliceManagedBy = "endpointslice.kubernetes.io/managed-by"
)

// ClusterGenerated reports whether the cluster generates an object and would generate it again, with a short reason. A
// mirror leaves such objects out unless a rule selects them. They include the registration of this server, which comes
// with the installation and holds the address and the certificate authority of this one, and Helm releases: Helm writes
// one at each upgrade, with all manifests in it.
func ClusterGenerated(resource schema.GroupResource, obj *unstructured.Unstructured) (reason string, made bool) {
	metadata := mapAt(obj.Object, "metadata")
	if hasController(metadata) {
		return "owned by a controller", true
	}
	name, labels := textAt(metadata, "name"), mapAt(metadata, "labels")
	switch resource.String() {
	case "configmaps":
		if strings.HasPrefix(name, helmRelease) {
			return "release of Helm", true
		}
		made, reason = name == "kube-root-ca.crt", "published into every namespace"
	case "serviceaccounts":
		made, reason = name == "default", "made in every namespace"
	case "secrets":
		if strings.HasPrefix(name, helmRelease) || textAt(obj.Object, "type") == "helm.sh/release.v1" {
			return "release of Helm", true
		}
		made, reason = isGeneratedToken(obj), "token of a ServiceAccount"
	case "services", "endpoints", "endpointslices.discovery.k8s.io":
		if isControllerManaged(resource.Resource, obj, metadata) {
			return "endpoints that a controller keeps", true
		}
		made, reason = name == "kubernetes" && textAt(metadata, "namespace") == "default", "address of the API server"
	case "priorityclasses.scheduling.k8s.io":
		made, reason = strings.HasPrefix(name, "system-"), "priority class of the system"
	case "ipaddresses.networking.k8s.io":
		made, reason = textAt(labels, "ipaddress.kubernetes.io/managed-by") == "ipallocator.k8s.io", "address of a Service"
	case "servicecidrs.networking.k8s.io":
		made, reason = name == "kubernetes", "range of the API server"
	case "apiservices.apiregistration.k8s.io":
		made, reason = registration(obj, labels)
	}
	if resource.Group == "rbac.authorization.k8s.io" {
		_, made = labels["kubernetes.io/bootstrapping"]
		reason = "bootstrap policy of the API server"
	}
	if !made {
		return "", false
	}
	return reason, true
}

// registration reports whether an APIService is registered again wherever its API is installed.
func registration(obj *unstructured.Unstructured, labels map[string]any) (made bool, reason string) {
	if textAt(mapAt(obj.Object, "spec"), "group") == ownGroup {
		return true, "registration of this server"
	}
	_, made = labels["kube-aggregator.kubernetes.io/automanaged"]
	return made, "registered by the API server"
}

// isGeneratedToken reports whether a Secret holds a ServiceAccount token that the control plane created unrequested, as
// it did before Kubernetes 1.24.
func isGeneratedToken(secret *unstructured.Unstructured) bool {
	if textAt(secret.Object, "type") != serviceAccountToken {
		return false
	}
	return ownsField(secret, controllerManager, "type")
}

// NotClusterGenerated returns a label selector that excludes the objects of a type that ClusterGenerated recognizes by
// labels alone, so that they need not be listed. It is empty if there are none. Clusters have more EndpointSlices than
// most other objects, and these change with every Pod.
func NotClusterGenerated(resource schema.GroupResource) string {
	switch resource.String() {
	case "endpoints":
		return endpointsManagedBy + "!=" + endpointsController
	case "endpointslices.discovery.k8s.io":
		return sliceManagedBy + " notin (endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)"
	}
	return ""
}

// isControllerManaged reports whether a controller derives Endpoints or an EndpointSlice from other objects in the
// cluster. Those that a user creates for a Service without a selector are desired state.
func isControllerManaged(resource string, obj *unstructured.Unstructured, metadata map[string]any) bool {
	labels, annotations := mapAt(metadata, "labels"), mapAt(metadata, "annotations")
	switch resource {
	case "endpointslices":
		// By Kubernetes' convention for the value, controllers have a name with a domain, tools and users one without a dot.
		return strings.Contains(textAt(labels, sliceManagedBy), ".")
	case "endpoints":
		if isPatroniLock(annotations) {
			return true
		}
		for _, mark := range []string{"endpoints.kubernetes.io/last-change-trigger-time", "control-plane.alpha.kubernetes.io/leader"} {
			if _, marked := annotations[mark]; marked {
				return true
			}
		}
		// Before Kubernetes 1.33 the label is missing. The trigger time is missing where it is unknown.
		return textAt(labels, endpointsManagedBy) == endpointsController || ownsField(obj, controllerManager, "subsets")
	}
	return false
}

// isPatroniLock reports whether annotations are those by which Patroni elects the leader of a PostgreSQL cluster.
// Patroni writes them every few seconds. EndpointSlices that mirror such Endpoints carry the label of Kubernetes'
// controller.
func isPatroniLock(annotations map[string]any) bool {
	_, renewed := annotations["renewTime"]
	_, acquired := annotations["acquireTime"]
	_, written := annotations["optime"]
	return renewed && (acquired || written)
}

// ownsField reports whether a field manager owns a field of the object.
func ownsField(obj *unstructured.Unstructured, manager, field string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+field+`":`))
	})
}

func hasController(metadata map[string]any) bool {
	owners, _ := metadata["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		reference, _ := owner.(map[string]any)
		return reference["controller"] == true
	})
}
