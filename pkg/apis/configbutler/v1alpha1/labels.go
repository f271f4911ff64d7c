// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of records, by which kubectl get syncstatuses -l configbutler.ai/catalog=shop finds those of one subject.
const (
	// LabelCatalog is the name of the AppCatalog that a record is about.
	LabelCatalog = "configbutler.ai/catalog"
	// LabelEnvironment is the name of the Environment that a record is about.
	LabelEnvironment = "configbutler.ai/environment"
	// LabelSyncType is the type of a SyncStatus.
	LabelSyncType = "configbutler.ai/sync-type"
)
