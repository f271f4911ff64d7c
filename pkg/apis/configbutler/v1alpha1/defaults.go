// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
		spec.AccessPolicy = &AccessPolicy{}
	}
	if spec.Ignore == nil {
		spec.Ignore = []IgnoreRule{{Fields: []string{"/spec/replicas"}}}
	}
}

// SetDefaults_Reminders spells out when reminders are sent: after a day, after three, and then each week.
func SetDefaults_Reminders(reminders *Reminders) { //nolint:staticcheck // the name that the generator looks for
	if len(reminders.Intervals) == 0 {
		const day = 24 * time.Hour
		reminders.Intervals = []metav1.Duration{{Duration: day}, {Duration: 2 * day}, {Duration: 7 * day}}
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
