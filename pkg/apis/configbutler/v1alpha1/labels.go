// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of records, by which kubectl get syncstatuses -l configbutler.ai/catalog=shop finds those of one subject, and of
// what an environment writes, by which it knows its own.
const (
	// LabelCatalog is the name of the AppCatalog that a record is about, or that an object comes from.
	LabelCatalog = "configbutler.ai/catalog"
	// LabelEnvironment is the name of the Environment that a record is about, or that wrote an object.
	LabelEnvironment = "configbutler.ai/environment"
	// LabelEnvironmentNamespace is the namespace of the Environment that wrote an object. Records are in it themselves.
	LabelEnvironmentNamespace = "configbutler.ai/environment-namespace"
	// LabelEnvironmentUID is the uid of the Environment that wrote an object. Another one of the same name does not take the
	// object for its own.
	LabelEnvironmentUID = "configbutler.ai/environment-uid"
	// LabelRevision is the catalog's revision that an object was last written for.
	LabelRevision = "configbutler.ai/revision"
	// LabelSyncType is the type of a SyncStatus.
	LabelSyncType = "configbutler.ai/sync-type"
)

// AnnotationMirror keeps an object, or all objects of a namespace, out of every mirror if its value is "false". With "true" it lets
// one in that the cluster has made.
const AnnotationMirror = "configbutler.ai/mirror"

// AnnotationRequest is the id of the request, in status.pendingRequests of an Environment, that a record was last moved for which
// another batch had begun.
const AnnotationRequest = "configbutler.ai/request"

// Labels and annotations of the Jobs that a SyncPipeline makes.
const (
	// LabelPipeline is the name of the SyncPipeline that made an object.
	LabelPipeline = "configbutler.ai/pipeline"
	// LabelSink is the name of the sink, among those of the pipeline, that the object was made for.
	LabelSink = "configbutler.ai/sink"
	// AnnotationBatch is the id of the batch that a Job is for.
	AnnotationBatch = "configbutler.ai/batch"
	// AnnotationSequence is the number of the batch that a Job is for. It rises from each batch of a sink to the next.
	AnnotationSequence = "configbutler.ai/sequence"
)
