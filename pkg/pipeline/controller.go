// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	controllerevents "github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Config is what a Controller needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Slipstream reaches the objects that users write.
	Slipstream versioned.Interface
	// Cluster reaches the API server of what pipelines tell of, with the server's own rights.
	Cluster *rest.Config
	// Store keeps what must outlive the process.
	Store *table.Store
	// Resolver tells which types a pipeline selects.
	Resolver access.Resolver
	// Dial connects to sinks.
	Dial delivery.Dial
	// Clock says when something is due; nil: the real one.
	Clock clock.WithTicker
	// DiscoveryRefresh (--discovery-refresh, 5 m) is how often discovery is asked without cause.
	DiscoveryRefresh time.Duration
}

// Controller runs the pipelines for as long as this process leads. It can be run again.
type Controller struct {
	Config Config
}

// Name is "pipeline".
func (c *Controller) Name() string { return "pipeline" }

// Run tells sinks until ctx ends. It returns an error only when it cannot start.
func (c *Controller) Run(ctx context.Context) error {
	config := c.Config
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	clients, err := watch.NewClients(config.Cluster)
	if err != nil {
		return fmt.Errorf("make clients for the cluster of pipelines: %w", err)
	}
	cluster, err := kubernetes.NewForConfig(config.Cluster)
	if err != nil {
		return fmt.Errorf("make a client for Events: %w", err)
	}
	sinks, err := sinkClients(config.Cluster)
	if err != nil {
		return err
	}
	standing, err := access.Connect(config.Cluster, config.Clock)
	if err != nil {
		return err
	}
	return tend(ctx, config, edge{
		discovery: clients.Discovery, dynamic: clients.Dynamic, metadata: clients.Metadata, sinkClient: sinks,
		events: controllerevents.NewRecorder(ctx, cluster), standing: standing,
	})
}

const (
	// One sink makes so many requests in a second at most: a Secret is read for each batch, and a Job takes four. This also bounds how
	// fast Jobs are made.
	sinkQPS   = 10
	sinkBurst = 20
)

// sinkClients returns what makes clients that share connections, but no limit: a sink with much to do does not have another wait.
func sinkClients(cluster *rest.Config) (func() (kubernetes.Interface, error), error) {
	config := rest.AddUserAgent(rest.CopyConfig(cluster), "pipeline")
	config.QPS, config.Burst, config.RateLimiter = sinkQPS, sinkBurst, nil
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the transport to the cluster of sinks: %w", err)
	}
	return func() (kubernetes.Interface, error) {
		client, err := kubernetes.NewForConfigAndClient(config, connections)
		if err != nil {
			return nil, fmt.Errorf("make a client for Secrets and Jobs: %w", err)
		}
		return client, nil
	}, nil
}

// edge is how the cluster is reached.
type edge struct {
	discovery watch.Discoverer
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	// sinkClient returns what reads the Secret of one sink, or makes its Jobs.
	sinkClient func() (kubernetes.Interface, error)
	// events make Events there.
	events controllerevents.Recorder
	// standing knows what the editors of pipelines may do there.
	standing Standing
}

// Standing tells whether those still have their permissions for whom sinks are told.
type Standing interface {
	// Check says in a sentence what of permissions who does not have; empty: nothing.
	Check(ctx context.Context, who access.Holder, permissions []access.Permission) (lost string, err error)
}

var _ Standing = &access.Standing{}
