// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/announce"
	"github.com/configbutler/slipstream/pkg/environment/job"
	"github.com/configbutler/slipstream/pkg/environment/run"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/source"
	"github.com/configbutler/slipstream/pkg/workstore"
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
	Store *workstore.Store
	// Records writes SyncStatuses.
	Records Records
	// Runner carries out syncs, as NewRunner makes it.
	Runner *run.Runner
	// Clock says when windows open; nil: the real one.
	Clock clock.WithTicker
}

// Controller runs the environments for as long as this process leads. It can be run again.
type Controller struct {
	Config Config
}

// Name is "environment".
func (c *Controller) Name() string { return "environment" }

// Run syncs environments until ctx ends. It returns an error only when it cannot start.
func (c *Controller) Run(ctx context.Context) error {
	clients, err := source.NewClients(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make clients for the cluster of environments: %w", err)
	}
	cluster, err := kubernetes.NewForConfig(c.Config.Cluster)
	if err != nil {
		return fmt.Errorf("make a client for Events: %w", err)
	}
	return tend(ctx, c.Config, edge{metadata: clients.Metadata, events: announce.NewRecorder(ctx, cluster)})
}

// edge is how the cluster is reached, and what is done there.
type edge struct {
	metadata metadata.Interface
	// events make Events there.
	events announce.Recorder
}

// Jobs carries out the runs that records stand for.
type Jobs interface {
	Do(ctx context.Context, job job.Job) (job.Outcome, error)
}

var _ Jobs = &job.Jobs{}
