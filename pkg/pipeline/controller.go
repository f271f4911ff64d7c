// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// Config is what a Controller needs beside controller.Shared. All fields are required.
type Config struct {
	// Resolver returns the types of a snapshot that a pipeline selects. The snapshot is nil while the types are unknown.
	Resolver func(*watch.Snapshot) access.Resolver
	// Network connects to HTTP sinks.
	Network *proxy.Network
	// SinkClient returns the client that reads the Secret of one sink and creates its Jobs.
	SinkClient func() (kubernetes.Interface, error)
}

// Controller delivers changes of the cluster to the sinks of SyncPipelines.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// controllerName is the name of the controller in logs, metrics and names of indexes.
const controllerName = "pipeline"

// Name is "pipeline".
func (c *Controller) Name() string { return controllerName }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	p, err := newPipelines(c.Config, shared)
	if err != nil {
		return nil, err
	}
	return p.runUntil, nil
}

const (
	// sinkQPS and sinkBurst limit the requests of one sink: each batch reads a Secret, and a Job needs four requests. They also bound
	// how fast Jobs are created.
	sinkQPS   = 10
	sinkBurst = 20
)

// SinkClients returns a Config.SinkClient for the cluster of config. Its clients share connections, but no rate limit, so that a sink with
// many changes does not delay another one.
func SinkClients(cluster *rest.Config) (func() (kubernetes.Interface, error), error) {
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
