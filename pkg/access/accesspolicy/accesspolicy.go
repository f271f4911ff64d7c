// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy evaluates access policies: whether objects of a namespace are allowed to refer to an object of
// another.
package accesspolicy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Labels returns the labels of a namespace, or false if it does not exist.
type Labels func(namespace string) (labels.Set, bool)

// Admits reports whether the policy of an object in the namespace own allows objects of the namespace from to refer to
// it. Without a policy, only the same namespace is allowed.
func Admits(policy *v1alpha1.AccessPolicy, own, from string, labelsOf Labels) bool {
	if policy == nil {
		return own == from
	}
	return admits(policy.NamespacedRules, own, from, labelsOf)
}

// AdmitsToCatalog is Admits for the policy of an AppCatalog.
func AdmitsToCatalog(policy *v1alpha1.CatalogAccessPolicy, own, from string, labelsOf Labels) bool {
	if policy == nil {
		return own == from
	}
	return admits(policy.NamespacedRules, own, from, labelsOf)
}

func admits(rules v1alpha1.NamespacedRules, own, from string, labelsOf Labels) bool {
	if own == from {
		return true
	}
	switch rules.Mode {
	case v1alpha1.AccessModeAllNamespaces:
		return true
	case v1alpha1.AccessModeFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(rules.NamespaceSelector)
		found, known := labelsOf(from)
		return err == nil && known && selector.Matches(found)
	default:
		return false
	}
}
