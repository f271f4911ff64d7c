// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/loop"
)

// assemble makes the server with its loop, on open stores. ctx must outlive the server.
func assemble(
	ctx context.Context, opts *options.Options, config *apiserver.Config, stores *stores,
) (*apiserver.Server, error) {
	if err := stores.applyTo(ctx, opts.Storage, &config.Generic.Config); err != nil {
		return nil, err
	}
	if err := opts.ApplyTo(config); err != nil {
		return nil, err
	}
	server, err := config.Complete().New()
	if err != nil {
		return nil, err
	}
	lease, err := newLease(opts, config.Generic.ClientConfig, stores.identity)
	if err != nil {
		return nil, err
	}
	controllers, err := loop.New(lease)
	if err != nil {
		return nil, err
	}
	return server, server.AddLoop(controllers)
}

// newLease is the Lease of opts in the cluster that config leads to.
func newLease(opts *options.Options, config *rest.Config, identity string) (loop.Lease, error) {
	election := opts.LeaderElection
	if !election.LeaderElect {
		return loop.Lease{}, nil
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "leader-election"))
	if err != nil {
		return loop.Lease{}, fmt.Errorf("making a client for the leader election: %w", err)
	}
	return loop.Lease{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: election.ResourceNamespace, Name: election.ResourceName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		Duration:      election.LeaseDuration.Duration,
		RenewDeadline: election.RenewDeadline.Duration,
		RetryPeriod:   election.RetryPeriod.Duration,
	}, nil
}
