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

// SetDefaults_GitRepoConfigSpec sets the default access policy.
func SetDefaults_GitRepoConfigSpec(spec *GitRepoConfigSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &AccessPolicy{}
	}
}

// SetDefaults_GitDestinationSpec sets the default access policy.
func SetDefaults_GitDestinationSpec(spec *GitDestinationSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &AccessPolicy{}
	}
}

// SetDefaults_Delivery sets the configuration of pull requests if the type is PullRequest.
func SetDefaults_Delivery(delivery *Delivery) { //nolint:staticcheck // the name that the generator looks for
	if delivery.Type == DeliveryPullRequest && delivery.PullRequest == nil {
		delivery.PullRequest = &PullRequestDelivery{}
	}
}

// SetDefaults_AppCatalogSpec sets the default access policy, and the default of ignore unless a list, even an empty one,
// is given.
func SetDefaults_AppCatalogSpec(spec *AppCatalogSpec) { //nolint:staticcheck // the name that the generator looks for
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &CatalogAccessPolicy{}
	}
	if spec.Ignore == nil {
		spec.Ignore = []IgnoreRule{{Fields: []string{"/spec/replicas"}}}
	}
}

// SetDefaults_InstanceSource sets the default of exclude unless a list, even an empty one, is given: types that change
// constantly without being of interest, and CustomResourceDefinitions, which are sent separately.
func SetDefaults_InstanceSource(source *InstanceSource) { //nolint:staticcheck // the name that the generator looks for
	if source.Exclude == nil {
		source.Exclude = []string{
			"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io",
			"customresourcedefinitions.apiextensions.k8s.io",
		}
	}
}

// SetDefaults_HTTPSink sets the default collection of DotAI. The other formats have no collections.
func SetDefaults_HTTPSink(sink *HTTPSink) { //nolint:staticcheck // the name that the generator looks for
	if sink.Format == PipelineFormatDotAI && sink.Collection == "" {
		sink.Collection = "capabilities"
	}
}

// SetDefaults_Reminders sets the default of after unless a list, even an empty one, is given.
func SetDefaults_Reminders(reminders *Reminders) { //nolint:staticcheck // the name that the generator looks for
	if reminders.After == nil {
		const day = 24 * time.Hour
		reminders.After = []metav1.Duration{{Duration: day}, {Duration: 3 * day}}
	}
}

// SetDefaults_EmailSink sets the default port, which depends on tls.
func SetDefaults_EmailSink(sink *EmailSink) { //nolint:staticcheck // the name that the generator looks for
	const submission, submissions = 587, 465 // RFC 6409 and RFC 8314
	if sink.Port == nil {
		sink.Port = new(int32)
		*sink.Port = submission
		if sink.TLS == EmailImplicitTLS {
			*sink.Port = submissions
		}
	}
}
