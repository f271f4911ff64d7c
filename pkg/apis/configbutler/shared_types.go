// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecretReference names a Secret in the namespace of the object that refers to it.
type SecretReference struct {
	Name string
}

// ObjectReference names an object, in the referring object's namespace unless it says another one.
type ObjectReference struct {
	Name      string
	Namespace string
}

// NamespacedObjectReference names an object and its namespace, for kinds that have no namespace themselves.
type NamespacedObjectReference struct {
	Namespace string
	Name      string
}

// AccessPolicy says which objects may refer to the one that carries it.
type AccessPolicy struct {
	NamespacedRules   NamespacedRules
	AllowClusterRules bool
}

// CatalogAccessPolicy says which environments may refer to the AppCatalog that carries it.
type CatalogAccessPolicy struct {
	NamespacedRules NamespacedRules
}

// NamespacedRules says from which namespaces an object may be referred to.
type NamespacedRules struct {
	Mode              AccessMode
	NamespaceSelector *metav1.LabelSelector
}

// AccessMode is a way to choose the namespaces that may refer to an object.
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
	Target   IgnoreTarget
	Fields   []string
	Managers []string
}

// IgnoreTarget selects objects by what they are and what they are called.
type IgnoreTarget struct {
	Group *string
	Kind  string
	Name  string
}

// ResourceType is a type of objects, as discovery names it.
type ResourceType struct {
	Group    string
	Version  string
	Resource string
}
