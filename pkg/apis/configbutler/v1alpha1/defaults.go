// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_GitRepoConfigSpec spells out the access policy that a missing one means.
func SetDefaults_GitRepoConfigSpec(spec *GitRepoConfigSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &AccessPolicy{}
	}
}

// SetDefaults_GitDestinationSpec spells out the access policy that a missing one means.
func SetDefaults_GitDestinationSpec(spec *GitDestinationSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &AccessPolicy{}
	}
}
