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

// ObjectReference names an object, in the referring object's namespace unless it says another one.
//
// +structType=atomic
type ObjectReference struct {
	// name of the object.
	Name string `json:"name"`
	// namespace of the object. Empty means the namespace of the object that holds this reference.
	// Another namespace must admit this one in its object's accessPolicy.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// NamespacedObjectReference names an object and its namespace, for kinds that have no namespace themselves.
//
// +structType=atomic
type NamespacedObjectReference struct {
	// namespace of the object.
	Namespace string `json:"namespace"`
	// name of the object.
	Name string `json:"name"`
}

// AccessPolicy says which objects may refer to the one that carries it.
type AccessPolicy struct {
	// namespacedRules decides about objects that live in a namespace.
	// +optional
	NamespacedRules NamespacedRules `json:"namespacedRules,omitempty"`
	// allowClusterRules admits cluster-scoped objects: ClusterWatchRules, and the SyncPolicy with its archive. Defaults to
	// false.
	// +optional
	AllowClusterRules bool `json:"allowClusterRules,omitempty"`
}

// CatalogAccessPolicy says which environments may refer to the AppCatalog that carries it.
type CatalogAccessPolicy struct {
	// namespacedRules says in which namespaces they have to be.
	// +optional
	NamespacedRules NamespacedRules `json:"namespacedRules,omitempty"`
}

// NamespacedRules says from which namespaces an object may be referred to.
type NamespacedRules struct {
	// mode is SameNamespace (the object's own namespace only), AllNamespaces, or FromSelector (the namespaces
	// that namespaceSelector matches, and the object's own). Defaults to SameNamespace.
	// +optional
	// +default=ref(AccessModeSameNamespace)
	Mode AccessMode `json:"mode,omitempty"`
	// namespaceSelector matches the labels of the namespaces that are admitted. It is required when mode is
	// FromSelector and must be absent otherwise.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// AccessMode is a way to choose the namespaces that may refer to an object.
//
// +enum
type AccessMode string

const (
	// AccessModeSameNamespace admits the object's own namespace only.
	AccessModeSameNamespace AccessMode = "SameNamespace"
	// AccessModeAllNamespaces admits every namespace.
	AccessModeAllNamespaces AccessMode = "AllNamespaces"
	// AccessModeFromSelector admits the namespaces that a label selector matches, and the object's own.
	AccessModeFromSelector AccessMode = "FromSelector"
)

// IgnoreRule names fields that are left out wherever its target matches. It names fields, managers, or both;
// both together mean the named fields only while one of the named managers owns them.
type IgnoreRule struct {
	// target says which objects the rule is for. An empty target matches every object.
	// +optional
	Target IgnoreTarget `json:"target,omitempty"`
	// fields are JSON pointers (RFC 6901). An item of a list is named by its key, as in
	// /spec/containers[name=web]/image, so that the pointer stays right when the list is reordered.
	// +optional
	// +listType=atomic
	Fields []string `json:"fields,omitempty"`
	// managers are field managers; without fields, everything that one of them owns is left out.
	// +optional
	// +listType=atomic
	Managers []string `json:"managers,omitempty"`
}

// IgnoreTarget selects objects by what they are and what they are called.
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

// ResourceType is a type of objects, as discovery names it.
type ResourceType struct {
	// group is the API group; the core group is empty.
	Group string `json:"group"`
	// version of the group.
	Version string `json:"version"`
	// resource is the plural in lower case, such as deployments.
	Resource string `json:"resource"`
}
