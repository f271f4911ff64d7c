// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"

// OfSecretDiff returns the permissions to read the Secrets whose content a diff of an environment shows: those in its target, and those in
// the source of its catalog that it copies.
func OfSecretDiff(e *v1alpha1.Environment, catalog *v1alpha1.AppCatalog) []Permission {
	permissions := append([]Permission{{
		Verbs: []string{"get"}, Namespace: e.Spec.TargetNamespace, Resources: []string{"secrets"},
	}}, copiesSecrets(e, catalog)...)
	for i := range permissions {
		permissions[i].Cause, permissions[i].Remedy = "whose content is shown", "or read the subresource diff, which hides it"
	}
	return permissions
}
