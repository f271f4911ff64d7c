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
	// helmRelease begins the names of Secrets and ConfigMaps in which Helm keeps what it has installed.
	helmRelease = "sh.helm.release.v1."
	// controllerManager is the field manager of what Kubernetes' own controllers make.
	controllerManager = "kube-controller-manager"
	// endpointsManagedBy is the label by which Kubernetes' controller knows its Endpoints, with endpointsController for a value.
	endpointsManagedBy  = "endpoints.kubernetes.io/managed-by"
	endpointsController = "endpoint-controller"
	// sliceManagedBy is the label that names who keeps an EndpointSlice.
	sliceManagedBy = "endpointslice.kubernetes.io/managed-by"
)

// ClusterMade says whether an object is one that the cluster makes by itself and would make again, and in a few words
// why. Such objects are left out of a mirror unless they are asked for. The registration of this server is among them:
// it comes with the installation, and holds the address and the authority of this one. Releases of Helm are among them, too: Helm writes
// one at each upgrade, with all manifests in it.
func ClusterMade(resource schema.GroupResource, obj *unstructured.Unstructured) (reason string, made bool) {
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
		made, reason = isGivenToken(obj), "token of a ServiceAccount"
	case "services", "endpoints", "endpointslices.discovery.k8s.io":
		if isFollowed(resource.Resource, obj, metadata) {
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

// registration says whether an APIService is registered again wherever what it stands for is installed.
func registration(obj *unstructured.Unstructured, labels map[string]any) (made bool, reason string) {
	if textAt(mapAt(obj.Object, "spec"), "group") == ownGroup {
		return true, "registration of this server"
	}
	_, made = labels["kube-aggregator.kubernetes.io/automanaged"]
	return made, "registered by the API server"
}

// isGivenToken says whether a Secret holds a token that a control plane has made for a ServiceAccount without being asked, as those before
// Kubernetes 1.24 did.
func isGivenToken(secret *unstructured.Unstructured) bool {
	if textAt(secret.Object, "type") != serviceAccountToken {
		return false
	}
	return ownsField(secret, controllerManager, "type")
}

// NotClusterMade returns a label selector that leaves out objects of a type of which labels alone tell that ClusterMade holds for them, so
// that nobody has to read them; empty if there are none. Clusters have more EndpointSlices than most else, and they change with every Pod.
func NotClusterMade(resource schema.GroupResource) string {
	switch resource.String() {
	case "endpoints":
		return endpointsManagedBy + "!=" + endpointsController
	case "endpointslices.discovery.k8s.io":
		return sliceManagedBy + " notin (endpointslice-controller.k8s.io,endpointslicemirroring-controller.k8s.io)"
	}
	return ""
}

// isFollowed says whether a controller keeps Endpoints or an EndpointSlice equal to something else in the cluster. What people make for a
// Service without a selector is desired state.
func isFollowed(resource string, obj *unstructured.Unstructured, metadata map[string]any) bool {
	labels, annotations := mapAt(metadata, "labels"), mapAt(metadata, "annotations")
	switch resource {
	case "endpointslices":
		// Kubernetes' conventions for the value: controllers have a name with a domain, tools and people one without a dot.
		return strings.Contains(textAt(labels, sliceManagedBy), ".")
	case "endpoints":
		if isLockOfPatroni(annotations) {
			return true
		}
		for _, mark := range []string{"endpoints.kubernetes.io/last-change-trigger-time", "control-plane.alpha.kubernetes.io/leader"} {
			if _, marked := annotations[mark]; marked {
				return true
			}
		}
		// Before Kubernetes 1.33 the label is missing, and the time where it is not known.
		return textAt(labels, endpointsManagedBy) == endpointsController || ownsField(obj, controllerManager, "subsets")
	}
	return false
}

// isLockOfPatroni says whether annotations are those by which Patroni elects the leader of a PostgreSQL cluster. It writes them every
// few seconds. EndpointSlices that mirror such Endpoints have the label of Kubernetes' controller.
func isLockOfPatroni(annotations map[string]any) bool {
	_, renewed := annotations["renewTime"]
	_, acquired := annotations["acquireTime"]
	_, written := annotations["optime"]
	return renewed && (acquired || written)
}

// ownsField says whether a field manager has set a field of the object.
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
