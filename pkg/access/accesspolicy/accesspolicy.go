// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accesspolicy answers whether objects of a namespace may refer to an object of another.
package accesspolicy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Labels are those of a namespace; false when there is none of the name.
type Labels func(namespace string) (labels.Set, bool)

// Admits says whether a policy of an object in the namespace own lets objects of the namespace from refer to it. No policy means
// the same namespace only.
func Admits(policy *v1alpha1.AccessPolicy, own, from string, labelsOf Labels) bool {
	if policy == nil {
		return own == from
	}
	return admits(policy.NamespacedRules, own, from, labelsOf)
}

// AdmitsToCatalog says the same of the policy of an AppCatalog.
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
