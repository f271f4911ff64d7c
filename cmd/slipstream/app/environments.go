// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/environment"
	"github.com/configbutler/slipstream/pkg/store/hmac"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// newRunner makes what carries out syncs in a cluster. Every replica plans with it, the one that leads syncs.
func newRunner(
	ctx context.Context, opts *options.EnvironmentOptions, cluster *rest.Config, server *apiserver.Server, store *table.Store,
) (*syncer.Syncer, error) {
	slipstream, err := newLoopbackClient(server.Generic.LoopbackClientConfig, "sync")
	if err != nil {
		return nil, err
	}
	hasher, err := hmac.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	marks, err := opts.Marks()
	if err != nil {
		return nil, err
	}
	return environment.NewRunner(environment.RunnerConfig{
		Slipstream: slipstream, Cluster: cluster, Store: store, Records: server.Records, Hasher: hasher, Marks: marks,
	})
}

// environments syncs environments.
func (c *controllers) environments() (*environment.Controller, error) {
	slipstream, err := c.slipstream("environment")
	if err != nil {
		return nil, err
	}
	return &environment.Controller{Config: environment.Config{
		Slipstream: slipstream, Cluster: c.cluster, Namespace: c.opts.Namespace, Store: c.store, Records: c.server.Records, Runner: c.runner,
		Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: c.opts.Attribution.MaxWait,
	}}, nil
}
