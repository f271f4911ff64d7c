// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// OfRepository returns the permissions to read the Secrets that a repository names. The server sends their content to its URL, and
// that of a proxy's Secret to the proxy.
func OfRepository(repository *v1alpha1.GitRepoConfig) []Permission {
	var permissions []Permission
	add := func(name string, path *field.Path) {
		permissions = append(permissions, Permission{
			Verbs: []string{"get"}, Namespace: repository.Namespace, Resources: []string{"secrets"}, Name: name,
			Cause: onBehalf, Remedy: fmt.Sprintf("or let %s name a Secret that you may read", path),
		})
	}
	if ref := repository.Spec.SecretRef; ref != nil {
		add(ref.Name, field.NewPath("spec", "secretRef", "name"))
	}
	if ref := repository.Spec.ProxySecretRef; ref != nil {
		add(ref.Name, field.NewPath("spec", "proxySecretRef", "name"))
	}
	if host := repository.Spec.Host; host != nil && host.SecretRef != nil {
		add(host.SecretRef.Name, field.NewPath("spec", "host", "secretRef", "name"))
	}
	if commit := repository.Spec.Commit; commit != nil && commit.Signing != nil {
		add(commit.Signing.SecretRef.Name, field.NewPath("spec", "commit", "signing", "secretRef", "name"))
	}
	return permissions
}

// OfSyncPolicy returns the permission to read the records that a SyncPolicy archives in Git; none if it archives none there.
func OfSyncPolicy(policy *v1alpha1.SyncPolicy) []Permission {
	if archive := policy.Spec.Retention.Archive; archive == nil || archive.DestinationRef == nil {
		return nil
	}
	return []Permission{{
		Verbs: []string{"list"}, Group: v1alpha1.GroupName, Resources: []string{"syncstatuses"},
		Cause: onBehalf, Remedy: "or let spec.retention.archive.type be File",
	}}
}
