// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package configbutler

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group that every kind of this package belongs to.
const GroupName = "configbutler.ai"

// SchemeGroupVersion is the group with the internal version.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: runtime.APIVersionInternal}

var (
	// SchemeBuilder collects the functions that add the internal kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the internal kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

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
	return nil
}
