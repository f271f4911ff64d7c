// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group that every kind of this package belongs to.
const GroupName = "configbutler.ai"

// SchemeGroupVersion is the group and version of this package's kinds.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that add this version to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this version's kinds, conversions and defaults to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme

	// localSchemeBuilder is the name under which generated code registers itself.
	localSchemeBuilder = &SchemeBuilder
)

func init() {
	localSchemeBuilder.Register(addDefaultingFuncs)
}

// Kind qualifies a kind with this package's group.
func Kind(kind string) schema.GroupKind {
	return SchemeGroupVersion.WithKind(kind).GroupKind()
}

// Resource qualifies a resource with this package's group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&GitRepoConfig{},
		&GitRepoConfigList{},
		&GitDestination{},
		&GitDestinationList{},
		&GitDestinationStatus{},
		&GitDestinationStatusList{},
		&MirrorSync{},
		&WatchRule{},
		&WatchRuleList{},
		&ClusterWatchRule{},
		&ClusterWatchRuleList{},
		&AppCatalog{},
		&AppCatalogList{},
		&CatalogWorkload{},
		&CatalogWorkloadList{},
		&CatalogSync{},
		&Environment{},
		&EnvironmentList{},
		&EnvironmentDependency{},
		&EnvironmentDependencyList{},
		&SyncRequest{},
		&EnvironmentDiff{},
		&ChangeDiff{},
		&ManifestOptions{},
		&ManifestList{},
		&SyncStatus{},
		&SyncStatusList{},
		&Change{},
		&ChangeList{},
		&SyncPolicy{},
		&SyncPolicyList{},
		&SyncPipeline{},
		&SyncPipelineList{},
		&PipelineSync{},
		&NotificationSink{},
		&NotificationSinkList{},
		&NotificationTest{},
		&Rollback{},
		&Dismissal{},
		&Undismissal{},
		&ConflictResolution{},
		&Rediscovery{},
		&Retry{},
	)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	if err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Environment"), convertFieldLabels(EnvironmentStateField)); err != nil {
		return fmt.Errorf("register the fields of Environments: %w", err)
	}
	if err := scheme.AddFieldLabelConversionFunc(SchemeGroupVersion.WithKind("Change"), convertFieldLabels(ChangeFields()...)); err != nil {
		return fmt.Errorf("register the fields of Changes: %w", err)
	}
	return nil
}
