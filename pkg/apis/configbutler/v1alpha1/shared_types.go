// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecretReference names a Secret in the namespace of the object that refers to it.
//
// +structType=atomic
type SecretReference struct {
	// name of the Secret.
	Name string `json:"name"`
}

// ObjectReference names an object, by default in the namespace of the referring object.
//
// +structType=atomic
type ObjectReference struct {
	// name of the object.
	Name string `json:"name"`
	// namespace of the object. Empty means the namespace of the referring object. An object in another namespace must
	// allow this one in its accessPolicy.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NamespacedObjectReference names an object and its namespace, for cluster-scoped kinds.
//
// +structType=atomic
type NamespacedObjectReference struct {
	// namespace of the object.
	Namespace string `json:"namespace"`
	// name of the object.
	Name string `json:"name"`
}

// AccessPolicy selects the objects that may refer to the object with this policy.
type AccessPolicy struct {
	// namespacedRules selects namespaced objects.
	// +optional
	NamespacedRules NamespacedRules `json:"namespacedRules,omitempty"`
	// allowClusterRules allows cluster-scoped objects: ClusterWatchRules, and the SyncPolicy with its archive. Defaults
	// to false.
	// +optional
	AllowClusterRules bool `json:"allowClusterRules,omitempty"`
}

// CatalogAccessPolicy selects the environments that may refer to the AppCatalog with this policy.
type CatalogAccessPolicy struct {
	// namespacedRules selects their namespaces.
	// +optional
	NamespacedRules NamespacedRules `json:"namespacedRules,omitempty"`
}

// NamespacedRules selects the namespaces from which an object may be referred to.
type NamespacedRules struct {
	// mode is SameNamespace (the object's own namespace only), AllNamespaces, or FromSelector (the namespaces
	// that namespaceSelector matches, and the object's own). Defaults to SameNamespace.
	// +optional
	// +default=ref(AccessModeSameNamespace)
	Mode AccessMode `json:"mode,omitempty"`
	// namespaceSelector matches the labels of the allowed namespaces. It is required if mode is FromSelector and must be
	// absent otherwise. It has at most 500 labels, expressions and values.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// AccessMode selects the namespaces that may refer to an object.
//
// +enum
type AccessMode string

const (
	// AccessModeSameNamespace allows the object's own namespace only.
	AccessModeSameNamespace AccessMode = "SameNamespace"
	// AccessModeAllNamespaces allows every namespace.
	AccessModeAllNamespaces AccessMode = "AllNamespaces"
	// AccessModeFromSelector allows the namespaces that a label selector matches, and the object's own.
	AccessModeFromSelector AccessMode = "FromSelector"
)

// IgnoreRule names fields that are left out of the objects that its target matches. It names fields, managers, or both;
// both together mean the named fields only while one of the named managers owns them.
type IgnoreRule struct {
	// target selects the objects. An empty target matches every object.
	// +optional
	Target IgnoreTarget `json:"target,omitempty"`
	// fields are JSON pointers (RFC 6901). An item of a list is identified by its key, as in
	// /spec/containers[name=web]/image, so that the pointer remains valid if the list is reordered.
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
	// managers are field managers; without fields, all fields that one of them owns are left out.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`
}

// IgnoreTarget selects objects by group, kind and name.
type IgnoreTarget struct {
	// group is the API group, with "" for the core group. Absent means every group.
	// +optional
	Group *string `json:"group,omitempty"`
	// kind of the objects. Empty means every kind.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the objects. Empty means every name.
	// +optional
	Name string `json:"name,omitempty"`
}

// ResourceType is a resource type, as named by discovery.
type ResourceType struct {
	// group is the API group; the core group is empty.
	Group string `json:"group"`
	// version of the group.
	Version string `json:"version"`
	// resource is the plural in lower case, such as deployments.
	Resource string `json:"resource"`
}
