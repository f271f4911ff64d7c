// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/readiness"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/environment/teardown"
)

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Namespace is the namespace of the server, which cannot be a target. Empty if the server has none.
	Namespace string
	// Runner runs syncs. See NewRunner.
	Runner *syncer.Syncer
	// Facts are the reports of who made changes; nil: authors are read from managedFields only.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content in facts; nil: facts have no hashes.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the maximum time that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is the maximum number of changed dependencies that wait to be recorded; 0: pending.DefaultCapacity.
	Capacity int
}

// Controller keeps Environments up to date with their catalogs.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// controllerName is the name of the controller in logs, metrics and names of indexes.
const controllerName = "environment"

// Name is "environment".
func (c *Controller) Name() string { return controllerName }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	environments, err := newEnvironments(c.Config, shared, c.Config.parts(shared))
	if err != nil {
		return nil, err
	}
	return environments.run, nil
}

// parts are the collaborators of the reconcile function that tests replace.
type parts struct {
	remover Remover
	// readiness returns what watches the workloads of environments. It calls changed when one becomes ready or fails.
	readiness func(changed func(types.NamespacedName)) (Readiness, error)
	// detector returns what detects changes of the dependencies of environments.
	detector func(of following) Detector
}

// parts returns the parts of a server.
func (c *Config) parts(shared *controller.Shared) parts {
	return parts{
		remover: &teardown.Remover{
			Client: shared.Cluster.Metadata, Mapper: c.Runner.Applier.Mapper, Discovery: shared.Cluster.Discovery,
			Limiter: c.Runner.Applier.Limiter, Concurrency: concurrency, Clock: shared.Clock,
			Kept: func(e *v1alpha1.Environment, why string) {
				shared.Events.Event(e, corev1.EventTypeNormal, reasonNamespaceKept, why)
			},
		},
		readiness: func(changed func(types.NamespacedName)) (Readiness, error) {
			return readiness.New(readiness.Config{Client: shared.Cluster.Dynamic, Changed: changed, Clock: shared.Clock})
		},
		detector: func(of following) Detector { return detect.New(c.detector(shared, of)) },
	}
}

// detector configures the detection of changes of dependencies.
func (c *Config) detector(shared *controller.Shared, of following) detect.Config {
	return detect.Config{
		Slipstream: shared.Client.ConfigbutlerV1alpha1(), Source: shared.Cluster.Dynamic, Mapper: c.Runner.StateReader.Mapper,
		Store: shared.Store, Records: shared.Records, Index: c.Runner.Index, Hasher: c.Runner.StateReader.Planner.Hasher, Runner: c.Runner,
		Policy: of.policy, Clock: shared.Clock, Sources: of.sources, Changed: of.changed,
		Facts: c.Facts, Hash: c.Hash, AttributionMaxWait: c.AttributionMaxWait, Capacity: c.Capacity,
	}
}

// following is what a Detector reads of environments, and what it calls when it has recorded a change.
type following struct {
	policy  func() v1alpha1.SyncPolicySpec
	sources func() map[string][]types.NamespacedName
	changed func(environments ...types.NamespacedName)
}

// Executor executes the jobs of records.
type Executor interface {
	Execute(ctx context.Context, job syncer.Job) (syncer.Outcome, error)
}

// Remover deletes the objects that environments wrote, and returns what is left.
type Remover interface {
	Remove(ctx context.Context, e *v1alpha1.Environment, custom ...schema.GroupKind) (left []string, err error)
}

// Readiness returns how many workloads of environments are ready, and why others are not.
type Readiness interface {
	Run(ctx context.Context)
	Of(e *v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string)
}

// Detector detects changes of the dependencies of environments, and discovers dependencies again.
type Detector interface {
	Run(ctx context.Context) error
	Rediscover(ctx context.Context, environment types.NamespacedName) error
	PolicyChanged()
	SourcesChanged()
}

var (
	_ Executor  = &syncer.Executor{}
	_ Remover   = &teardown.Remover{}
	_ Readiness = &readiness.Watcher{}
	_ Detector  = &detect.Detector{}
)
