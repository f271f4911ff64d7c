// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/readiness"
	"github.com/configbutler/slipstream/pkg/environment/teardown"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Records writes the records that the API lets nobody write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) error
}

// Config is what a Controller needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Slipstream reaches the objects that users write.
	Slipstream versioned.Interface
	// Cluster reaches the API server of sources and targets, with the server's own rights.
	Cluster *rest.Config
	// Namespace is the server's own, which no environment is built in; empty: it has none.
	Namespace string
	// Store keeps what must outlive the process. It is that of the runner.
	Store *table.Store
	// Records writes SyncStatuses.
	Records Records
	// Runner carries out syncs, as NewRunner makes it.
	Runner *syncer.Syncer
	// Clock says when windows open; nil: the real one.
	Clock clock.WithTicker
	// Facts are the reports of who made changes; nil: only what managedFields say is known.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts have; nil: they have none.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is how many changed dependencies can wait to be recorded; 0: intake.DefaultCapacity.
	Capacity int
}

// Controller runs the environments for as long as this process leads. It can be run again.
type Controller struct {
	Config Config
}

// Name is "environment".
func (c *Controller) Name() string { return "environment" }

// Run syncs environments until ctx ends. It returns an error only when it cannot start.
func (c *Controller) Run(ctx context.Context) error {
	clients, err := kubewatch.NewClients(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make clients for the cluster of environments: %w", err)
	}
	cluster, err := kubernetes.NewForConfig(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make a client for Events: %w", err)
	}
	config := c.Config
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	recorder := controllerevents.NewRecorder(ctx, cluster)
	return tend(ctx, config, edge{
		metadata: clients.Metadata, events: recorder,
		remover: &teardown.Remover{
			Client: clients.Metadata, Mapper: config.Runner.Applier.Mapper, Types: clients.Discovery,
			Limiter: config.Runner.Applier.Limiter, Concurrency: concurrency,
			Stays: func(e *v1alpha1.Environment, why string) {
				recorder.Event(e, corev1.EventTypeNormal, reasonNamespaceKept, why)
			},
		},
		watch: func(changed func(types.NamespacedName)) (Readiness, error) {
			return readiness.New(readiness.Config{Client: clients.Dynamic, Changed: changed, Clock: config.Clock})
		},
		detect: func(of following) Detector { return detect.New(config.detector(clients, of)) },
	})
}

// detector is what notices changes of what environments depend on.
func (c *Config) detector(clients *kubewatch.Clients, of following) detect.Config {
	return detect.Config{
		Slipstream: c.Slipstream.ConfigbutlerV1alpha1(), Source: clients.Dynamic, Mapper: c.Runner.StateReader.Mapper, Store: c.Store,
		Records: c.Records, Index: c.Runner.Index, Hasher: c.Runner.StateReader.Planner.Hasher, Runner: c.Runner, Policy: of.policy,
		Clock:   c.Clock,
		Sources: of.sources, Changed: of.changed,
		Facts: c.Facts, Hash: c.Hash, AttributionMaxWait: c.AttributionMaxWait, Capacity: c.Capacity,
	}
}

// edge is how the cluster is reached, and what is done there.
type edge struct {
	metadata metadata.Interface
	// events make Events there.
	events  controllerevents.Recorder
	remover Remover
	// watch returns what says whether workloads came up, and tells changed when they do.
	watch func(changed func(types.NamespacedName)) (Readiness, error)
	// detect returns what notices changes of what environments depend on.
	detect func(of following) Detector
}

// following is what a Detector knows of environments, and whom it tells, as detect.Config has it.
type following struct {
	policy  func() v1alpha1.SyncPolicySpec
	sources func() map[string][]types.NamespacedName
	changed func(environments ...types.NamespacedName)
}

// Jobs carries out the runs that records stand for.
type Jobs interface {
	Execute(ctx context.Context, job syncer.Job) (syncer.Outcome, error)
}

// Remover removes what environments wrote, and says what is left.
type Remover interface {
	Remove(ctx context.Context, e *v1alpha1.Environment, custom ...schema.GroupKind) (left []string, err error)
}

// Readiness says whether what environments hold came up, and why not.
type Readiness interface {
	Run(ctx context.Context)
	Of(e *v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string)
}

// Detector notices changes of what environments depend on, and finds anew what that is.
type Detector interface {
	Run(ctx context.Context) error
	Rediscover(ctx context.Context, environment types.NamespacedName) error
	PolicyChanged()
	SourcesChanged()
}

var (
	_ Jobs      = &syncer.Executor{}
	_ Remover   = &teardown.Remover{}
	_ Readiness = &readiness.Watcher{}
	_ Detector  = &detect.Detector{}
)
