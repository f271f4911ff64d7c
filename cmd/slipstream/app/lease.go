// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/controller"
)

// newLease returns the Lease of opts in the cluster of config.
func newLease(opts *options.Options, config *rest.Config, identity string) (controller.Lease, error) {
	election := opts.LeaderElection
	if !election.LeaderElect {
		return controller.Lease{}, nil
	}
	renewing := rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	watching, err := coordinationv1.NewForConfig(renewing)
	if err != nil {
		return controller.Lease{}, fmt.Errorf("creating a client that watches the Lease: %w", err)
	}
	// A request that hangs must leave time for another one before the deadline, and a slow API server gets as much time as in upstream's
	// controllers.
	renewing.Timeout = max(election.RetryPeriod.Duration, election.RenewDeadline.Duration/2)
	client, err := coordinationv1.NewForConfig(renewing)
	if err != nil {
		return controller.Lease{}, fmt.Errorf("creating a client for the leader election: %w", err)
	}
	name := metav1.ObjectMeta{Namespace: election.ResourceNamespace, Name: election.ResourceName}
	return controller.Lease{
		NewLock: func() resourcelock.Interface {
			return &resourcelock.LeaseLock{
				LeaseMeta: name, Client: client, LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			}
		},
		Watch: func(ctx context.Context) (watch.Interface, error) {
			return watching.Leases(name.Namespace).Watch(ctx, metav1.SingleObject(name))
		},
		Times: controller.Times{
			Duration:      election.LeaseDuration.Duration,
			RenewDeadline: election.RenewDeadline.Duration,
			RetryPeriod:   election.RetryPeriod.Duration,
		},
	}, nil
}
