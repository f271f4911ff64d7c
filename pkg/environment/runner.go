// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"

	"k8s.io/client-go/openapi"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

const (
	// requestsPerSecond and requestBurst limit the requests with which all syncs of a process write to the cluster. A sync of 100 workloads
	// and 200 dependencies makes about 1200 requests, a quarter of which read.
	requestsPerSecond = 200
	requestBurst      = 400
	// readsPerSecond and readBurst limit the requests that read what plans and syncs are made from. A plan makes about 20, and after a start,
	// each environment is planned: with the limit of writes, a thousand plans took two minutes, and syncs could not write meanwhile.
	readsPerSecond = 1000
	readBurst      = 1000
	// concurrency is how many requests a sync has in flight.
	concurrency = 8
	// keptRevisions is how many revisions of an environment's copies are stored, the maximum of historyLimit.
	keptRevisions = 100
)

// RunnerConfig configures a syncer.Syncer, in addition to controller.Process. All fields are required.
type RunnerConfig struct {
	// Hasher hashes the dependencies of environments.
	Hasher plan.Hasher
	// Marks are the tracking labels and annotations of other tools, which are not copied.
	Marks objectcopy.Marks
}

// NewRunner returns the Syncer of a process. All syncs share its rate limits and its index. It has no Records, so it only plans until
// syncer.Syncer.WithRecords. The work store must encrypt its rows.
func NewRunner(config RunnerConfig, process *controller.Process) (*syncer.Syncer, error) {
	if config.Hasher == nil {
		return nil, errors.New("make a runner of syncs: the hasher of dependencies is missing")
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestBurst)
	reads := flowcontrol.NewTokenBucketRateLimiter(readsPerSecond, readBurst)
	cluster, api := process.Cluster, process.Client.ConfigbutlerV1alpha1()
	kept := copies.New(process.Store, keptRevisions)
	schemas := diff.NewSchemas(openapi.ToClientWithContext(cluster.Discovery.OpenAPIV3()), process.Clock)
	return &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: api, Client: cluster.Dynamic, Metadata: cluster.Metadata, Mapper: process.Types,
			Limiter: reads, Concurrency: concurrency,
			Planner: plan.Planner{Schemas: schemas, Hasher: config.Hasher, Marks: config.Marks},
			Copies:  kept, Revisions: revisions.New(process.Store), Rights: process.Access, Clock: process.Clock,
		},
		Applier: &apply.Applier{
			Client: cluster.Dynamic, Mapper: process.Types, Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: concurrency,
		},
		Copies: kept, Dependencies: api, Index: index.New(),
	}, nil
}
