// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// requestsPerSecond and requestBurst bound what all runs of a process ask of the cluster. A sync of 100 workloads and 200
	// dependencies makes about 1200 requests, and others want to be served meanwhile.
	requestsPerSecond = 200
	requestBurst      = 400
	// concurrency is how many requests a run makes at once.
	concurrency = 8
	// keptRevisions is how many revisions of an environment's copies are kept, as many as a historyLimit can be.
	keptRevisions = 100
)

// RunnerConfig is what a syncer.Syncer is made of. All fields are required unless their comment says otherwise.
type RunnerConfig struct {
	// Slipstream reaches the objects of this server.
	Slipstream versioned.Interface
	// Cluster reaches the API server of sources and targets, with the server's own rights.
	Cluster *rest.Config
	// Store has what was applied and what catalogs offered. It has to seal its rows.
	Store *table.Store
	// Records writes EnvironmentDependencies.
	Records syncer.Records
	// Hasher makes the hashes of what environments depend on.
	Hasher plan.Hasher
	// Marks are the labels and annotations of other tools, which copies do not have.
	Marks objectcopy.Marks
	// Clock says when dependencies are discovered; nil: the real one.
	Clock clock.PassiveClock
}

// NewRunner returns what carries out syncs, of which a process has one: its limits are for all of them, and its index is what the
// process knows. A process that does not lead only plans with it.
func NewRunner(config RunnerConfig) (*syncer.Syncer, error) {
	if config.Hasher == nil {
		return nil, errors.New("make a runner of syncs: what hashes dependencies is missing")
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	clients, err := watch.NewClients(config.Cluster)
	if err != nil {
		return nil, fmt.Errorf("make clients for the cluster of environments: %w", err)
	}
	mapper := watch.NewMapper(clients.Discovery, config.Clock)
	limiter := flowcontrol.NewTokenBucketRateLimiter(requestsPerSecond, requestBurst)
	standing, err := access.Connect(config.Cluster, config.Clock)
	if err != nil {
		return nil, err
	}
	kept := copies.New(config.Store, keptRevisions)
	schemas := diff.NewSchemas(openapi.ToClientWithContext(clients.Discovery.OpenAPIV3()), config.Clock)
	return &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: config.Slipstream.ConfigbutlerV1alpha1(), Client: clients.Dynamic, Metadata: clients.Metadata, Mapper: mapper,
			Limiter: limiter, Concurrency: concurrency,
			Planner: plan.Planner{Schemas: schemas, Hasher: config.Hasher, Marks: config.Marks},
			Copies:  kept, Revisions: revisions.New(config.Store), Rights: standing, Clock: config.Clock,
		},
		Applier: &apply.Applier{
			Client: clients.Dynamic, Mapper: mapper, Manager: v1alpha1.FieldManager, Limiter: limiter, Concurrency: concurrency,
		},
		Copies: kept, Records: config.Records, Dependencies: config.Slipstream.ConfigbutlerV1alpha1(), Index: index.New(),
	}, nil
}
