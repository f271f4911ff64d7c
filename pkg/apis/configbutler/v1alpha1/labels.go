// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of records, for example for kubectl get syncstatuses -l configbutler.ai/catalog=shop, and of objects that an
// environment writes, by which it identifies its own.
const (
	// LabelCatalog is the name of the AppCatalog of a record, or of the catalog that an object comes from.
	LabelCatalog = "configbutler.ai/catalog"
	// LabelEnvironment is the name of the Environment of a record, or of the environment that wrote an object.
	LabelEnvironment = "configbutler.ai/environment"
	// LabelEnvironmentNamespace is the namespace of the Environment that wrote an object. Records are in that namespace
	// themselves.
	LabelEnvironmentNamespace = "configbutler.ai/environment-namespace"
	// LabelEnvironmentUID is the uid of the Environment that wrote an object. A later Environment of the same name does
	// not adopt the object.
	LabelEnvironmentUID = "configbutler.ai/environment-uid"
	// LabelRevision is the catalog's revision with which an object was last written.
	LabelRevision = "configbutler.ai/revision"
	// LabelSyncType is the type of a SyncStatus.
	LabelSyncType = "configbutler.ai/sync-type"
)

// AnnotationMirror with the value "false" excludes an object, or all objects of a namespace, from every mirror. With the
// value "true" it includes an object that the cluster has created.
const AnnotationMirror = "configbutler.ai/mirror"

// AnnotationRequest is the id of the request, in status.pendingRequests of an Environment, that last updated a record
// whose batch another request had started.
const AnnotationRequest = "configbutler.ai/request"

// Labels and annotations of the Jobs that a SyncPipeline creates.
const (
	// LabelPipeline is the name of the SyncPipeline that created an object.
	LabelPipeline = "configbutler.ai/pipeline"
	// LabelSink is the name of the pipeline's sink for which the object was created.
	LabelSink = "configbutler.ai/sink"
	// AnnotationBatch is the id of the batch of a Job.
	AnnotationBatch = "configbutler.ai/batch"
	// AnnotationSequence is the number of the batch of a Job. It increases with each batch of a sink.
	AnnotationSequence = "configbutler.ai/sequence"
)
