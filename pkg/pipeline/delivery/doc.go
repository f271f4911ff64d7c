// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delivery sends batches to receivers: over HTTP, or by creating a Kubernetes Job for each batch.
//
// A batch is sent as one or several parts. Each part has a result: delivered, retry, rejected or waiting. When the response to a part was
// lost, it is unknown whether the receiver processed it; the part is sent again, and receivers must accept a repeated one.
//
// # HTTP
//
// pkg/pipeline/format encodes a batch as calls and interprets the responses. pkg/access/egress/outbound makes the calls: URLs and responses
// are untrusted. Connections are only to the host that the sink names. At most 64 KiB of a response are read, within the timeout of
// the call. A message shows a response as one printable line without the credentials, which are read for each batch and not cached.
//
// # Jobs
//
// A batch becomes a Job from the sink's template and a ConfigMap with the batch, which the Job mounts. The Job is created first and owns
// the ConfigMap: whatever is deleted or fails in between, the garbage collector cleans up, and Pods wait until the ConfigMap exists. The
// batch is delivered when both exist. Failures of the Job itself are handled by its own retries.
//
// The name of the Job is derived from the batch. A batch that is repeated after a crash finds its Job and creates what is missing. The sink
// keeps no state: it lists the Jobs by their labels each time.
package delivery
