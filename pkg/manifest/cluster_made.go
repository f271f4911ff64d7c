// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serviceAccountToken is the type of Secrets that hold a ServiceAccount's token.
const serviceAccountToken = "kubernetes.io/service-account-token" //nolint:gosec // the name of a type, no credential

// ClusterMade says whether an object is one that the cluster makes by itself and would make again, and in a few words
// why. Such objects are left out of a mirror unless they are asked for.
func ClusterMade(resource schema.GroupResource, obj *unstructured.Unstructured) (reason string, made bool) {
	metadata := mapAt(obj.Object, "metadata")
	if hasController(metadata) {
		return "owned by a controller", true
	}
	name, labels := textAt(metadata, "name"), mapAt(metadata, "labels")
	switch resource.String() {
	case "configmaps":
		made, reason = name == "kube-root-ca.crt", "published into every namespace"
	case "serviceaccounts":
		made, reason = name == "default", "made in every namespace"
	case "secrets":
		made, reason = textAt(obj.Object, "type") == serviceAccountToken, "token of a ServiceAccount"
	case "priorityclasses.scheduling.k8s.io":
		made, reason = strings.HasPrefix(name, "system-"), "priority class of the system"
	case "ipaddresses.networking.k8s.io":
		made, reason = textAt(labels, "ipaddress.kubernetes.io/managed-by") == "ipallocator.k8s.io", "address of a Service"
	case "servicecidrs.networking.k8s.io":
		made, reason = name == "kubernetes", "range of the API server"
	case "apiservices.apiregistration.k8s.io":
		_, made = labels["kube-aggregator.kubernetes.io/automanaged"]
		reason = "registered by the API server"
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

func hasController(metadata map[string]any) bool {
	owners, _ := metadata["ownerReferences"].([]any)
	return slices.ContainsFunc(owners, func(owner any) bool {
		reference, _ := owner.(map[string]any)
		return reference["controller"] == true
	})
}
