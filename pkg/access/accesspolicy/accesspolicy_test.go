// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package accesspolicy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestAdmits(t *testing.T) {
	namespaces := map[string]labels.Set{"teams": {"team": "a"}, "others": nil}
	labelsOf := func(namespace string) (labels.Set, bool) {
		found, known := namespaces[namespace]
		return found, known
	}
	policy := func(mode v1alpha1.AccessMode, selector *metav1.LabelSelector) *v1alpha1.AccessPolicy {
		return &v1alpha1.AccessPolicy{NamespacedRules: v1alpha1.NamespacedRules{Mode: mode, NamespaceSelector: selector}}
	}
	teams := policy(v1alpha1.AccessModeFromSelector, &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}})
	for _, test := range []struct {
		name   string
		policy *v1alpha1.AccessPolicy
		from   string
		want   bool
	}{
		{"none, the same namespace", nil, "platform", true},
		{"none, another", nil, "teams", false},
		{"the same namespace", policy(v1alpha1.AccessModeSameNamespace, nil), "platform", true},
		{"the same namespace, another", policy(v1alpha1.AccessModeSameNamespace, nil), "teams", false},
		{"all", policy(v1alpha1.AccessModeAllNamespaces, nil), "teams", true},
		{"a selector", teams, "teams", true},
		{"a selector, its own namespace", teams, "platform", true},
		{"a selector, without the label", teams, "others", false},
		{"a selector, a namespace that is not there", teams, "nowhere", false},
		{"a selector of all, a missing namespace", policy(v1alpha1.AccessModeFromSelector, &metav1.LabelSelector{}), "nowhere", false},
		{"no selector where there must be one", policy(v1alpha1.AccessModeFromSelector, nil), "teams", false},
		{"a mode of another time", policy("Other", nil), "teams", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := accesspolicy.Admits(test.policy, "platform", test.from, labelsOf); got != test.want {
				t.Errorf("got %v", got)
			}
			var catalogs *v1alpha1.CatalogAccessPolicy
			if test.policy != nil {
				catalogs = &v1alpha1.CatalogAccessPolicy{NamespacedRules: test.policy.NamespacedRules}
			}
			if got := accesspolicy.AdmitsToCatalog(catalogs, "platform", test.from, labelsOf); got != test.want {
				t.Errorf("to a catalog: got %v", got)
			}
		})
	}
}
