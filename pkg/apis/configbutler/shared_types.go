// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecretReference names a Secret in the namespace of the object that refers to it.
type SecretReference struct {
	Name string
}

// ObjectReference names an object, by default in the namespace of the referring object.
type ObjectReference struct {
	Name      string
	Namespace string
}

// NamespacedObjectReference names an object and its namespace, for cluster-scoped kinds.
type NamespacedObjectReference struct {
	Namespace string
	Name      string
}

// AccessPolicy selects the objects that may refer to the object with this policy.
type AccessPolicy struct {
	NamespacedRules   NamespacedRules
	AllowClusterRules bool
}

// CatalogAccessPolicy selects the environments that may refer to the AppCatalog with this policy.
type CatalogAccessPolicy struct {
	NamespacedRules NamespacedRules
}

// NamespacedRules selects the namespaces from which an object may be referred to.
type NamespacedRules struct {
	Mode              AccessMode
	NamespaceSelector *metav1.LabelSelector
}

// AccessMode selects the namespaces that may refer to an object.
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
	Target   IgnoreTarget
	Fields   []string
	Managers []string
}

// IgnoreTarget selects objects by group, kind and name.
type IgnoreTarget struct {
	Group *string
	Kind  string
	Name  string
}

// ResourceType is a resource type, as named by discovery.
type ResourceType struct {
	Group    string
	Version  string
	Resource string
}
