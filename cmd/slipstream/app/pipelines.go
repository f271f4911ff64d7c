// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import "github.com/configbutler/slipstream/pkg/pipeline"

// pipelines tells the sinks of pipelines.
func (c *controllers) pipelines() (*pipeline.Controller, error) {
	slipstream, err := c.slipstream("pipeline")
	if err != nil {
		return nil, err
	}
	policy, err := c.egress()
	if err != nil {
		return nil, err
	}
	return &pipeline.Controller{Config: pipeline.Config{
		Slipstream: slipstream, Cluster: c.cluster, Store: c.store, Resolver: c.resolver, Dial: policy.DialContext,
		DiscoveryRefresh: c.opts.Mirror.DiscoveryRefresh,
	}}, nil
}
