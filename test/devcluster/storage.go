// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"errors"
	"syscall"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

// UseStorage makes the servers that are started next use another storage, in the given
// number of replicas. It does not move stored objects. All servers must be stopped.
func (c *Cluster) UseStorage(ctx context.Context, storage Storage, replicas int) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.forgetEnded(ctx); err != nil {
		return err
	}
	if len(c.servers(nil)) > 0 {
		return errors.New("cannot change the storage while a server runs")
	}
	options := c.state.Options
	options.Storage, options.Replicas = storage, replicas
	options, err := options.withDefaults()
	if err != nil {
		return err
	}
	if err := c.state.Ports.chooseReplicas(ctx, replicas); err != nil {
		return err
	}
	c.state.Options = options
	return errors.Join(c.stopBalancer(ctx), c.state.write(c.files.state()))
}

// stopBalancer stops the balancer, if it runs.
func (c *Cluster) stopBalancer(ctx context.Context) error {
	for _, running := range c.state.Processes {
		if running.Name == balancerPart {
			return errors.Join(endGracefully(ctx, []process.Process{running}, syscall.SIGTERM), c.forgetEnded(ctx))
		}
	}
	return nil
}
