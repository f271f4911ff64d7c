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

// SetDefaults_AppCatalogSpec spells out the access policy that a missing one means, and what is ignored unless a list, be
// it an empty one, says otherwise.
func SetDefaults_AppCatalogSpec(spec *AppCatalogSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &CatalogAccessPolicy{}
	}
	if spec.Ignore == nil {
		spec.Ignore = []IgnoreRule{{Fields: []string{"/spec/replicas"}}}
	}
}

// SetDefaults_InstanceSource spells out which types are left out unless a list, be it an empty one, says otherwise: those that
// change all the time and tell nobody anything, and CustomResourceDefinitions, which are told of by themselves.
func SetDefaults_InstanceSource(source *InstanceSource) { //nolint:staticcheck // the name that the generator looks for
	if source.Exclude == nil {
		source.Exclude = []string{
			"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io",
			"customresourcedefinitions.apiextensions.k8s.io",
		}
	}
}

// SetDefaults_HTTPSink spells out where DotAI keeps what it finds out. The other formats know no collections.
func SetDefaults_HTTPSink(sink *HTTPSink) { //nolint:staticcheck // the name that the generator looks for
	if sink.Format == PipelineFormatDotAI && sink.Collection == "" {
		sink.Collection = "capabilities"
	}
}
