// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"slices"
	"strings"

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
	for _, entry := range secret.GetManagedFields() {
		if entry.Manager == controllerManager && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:type":`)) {
			return true
		}
	}
	return false
}

func hasController(metadata map[string]any) bool {
	owners, _ := metadata["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		reference, _ := owner.(map[string]any)
		return reference["controller"] == true
	})
}
