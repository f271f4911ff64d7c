// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/attribution"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Records writes the records that the API lets nobody write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) error
}

// Authors finds out who made the changes that watches tell of.
type Authors interface {
	// Start has group do what there is to do until ctx ends, and returns when it knows what is known already.
	Start(ctx context.Context, group *wait.Group)
	// Listed says that a watch starts, or starts again.
	Listed(resource schema.GroupVersionResource, namespace string)
	// Observe takes note of an event that nobody asks about.
	Observe(event attribution.Event)
	// Submit calls deliver with the author of an event.
	Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error
	// FindSince returns the author of what a comparison has found that was another at a time.
	FindSince(event attribution.Event, since time.Time) attribution.Author
	// WaitingIn says whether an event of an object of the namespace has not been delivered yet.
	WaitingIn(namespace string) bool
}

var _ Authors = &attribution.Joiner{}

// Config is what a Controller needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Slipstream reaches the objects that users write.
	Slipstream versioned.Interface
	// Cluster reaches the API server of the sources, with the server's own rights.
	Cluster *rest.Config
	// Namespace is the server's own, which no catalog follows; empty: it has none.
	Namespace string
	// Store keeps what must outlive the process.
	Store *table.Store
	// Landings know which commits of mirrored branches hold an object; nil: nothing is mirrored.
	Landings *commitindex.Log
	// Records writes CatalogWorkloads and SyncStatuses.
	Records Records
	// Clock says when windows end; nil: the real one.
	Clock clock.WithTicker
	// DiscoveryRefresh (--discovery-refresh, 5 m) is how often discovery is asked without cause.
	DiscoveryRefresh time.Duration
	// Facts are the reports of who made changes; nil: only what managedFields say is known.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts have; nil: they have none.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is how many changed objects can wait to be recorded; 0: intake.DefaultCapacity.
	Capacity int
}

// Controller runs the catalogs for as long as this process leads. It can be run again.
type Controller struct {
	Config Config
}

// controllerName is what logs and metrics call the controller.
const controllerName = "catalog"

// Name is "catalog".
func (c *Controller) Name() string { return controllerName }

// Run follows the sources of catalogs until ctx ends. It returns an error only when it cannot start.
func (c *Controller) Run(ctx context.Context) error {
	clients, err := watch.NewClients(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make clients for the source cluster: %w", err)
	}
	cluster, err := kubernetes.NewForConfig(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make a client for Events: %w", err)
	}
	config := c.Config
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	standing, err := access.Connect(config.Cluster, config.Clock)
	if err != nil {
		return err
	}
	return run(ctx, config, edge{
		discovery: clients.Discovery, dynamic: clients.Dynamic, metadata: clients.Metadata,
		events: controllerevents.NewRecorder(ctx, cluster), standing: standing,
	})
}

// edge is how the source cluster is reached.
type edge struct {
	discovery watch.Discoverer
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	// authors find out who makes changes there; nil: by the facts of the configuration.
	authors Authors
	// events make Events there.
	events controllerevents.Recorder
	// standing knows what the editors of catalogs may read there.
	standing Standing
}

var _ watch.Discoverer = &discovery.DiscoveryClient{}
