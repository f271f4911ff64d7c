// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
)

const (
	// pruneInterval is how often old Changes are deleted. It is done earlier after many have been added.
	pruneInterval = time.Hour
	// pruneShare is the part of the maximum number of Changes that may be added before old ones are deleted: a twentieth.
	pruneShare = 20
	// checkInterval is how often it is checked whether old Changes have to be deleted, and the time between two attempts.
	checkInterval = time.Minute
	// preparedAge is how long the Changes of a push are kept that the remote has neither accepted nor rejected. A push in doubt is
	// settled when its branch is next pushed to, which a suspended destination or an unreachable remote delays.
	preparedAge = 90 * 24 * time.Hour
)

// Controller deletes old Changes according to the SyncPolicy.
type Controller struct{ History *History }

var _ controller.Controller = &Controller{}

// Name implements controller.Controller.
func (*Controller) Name() string { return "history" }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	c.History.Reset()
	policies := shared.Informers.Configbutler().V1alpha1().SyncPolicies().Lister()
	return func(ctx context.Context) error {
		c.History.Run(ctx, func() Limits { return limitsOf(syncpolicy.Of(policies).Changes) })
		return nil
	}, nil
}

// limitsOf returns the limits of a policy with its defaults.
func limitsOf(policy v1alpha1.ChangeRetention) Limits {
	return Limits{Age: policy.TTL.Duration, Total: int(*policy.MaxTotal), PerObject: int(*policy.MaxPerObject)}
}

// Run deletes Changes that exceed the limits until ctx ends.
func (h *History) Run(ctx context.Context, limits func() Limits) {
	ticker := h.config.Clock.NewTicker(checkInterval)
	defer ticker.Stop()
	var pruned time.Time
	for {
		now, added, limits := h.config.Clock.Now(), h.added.Load(), limits()
		if added > int64(limits.Total/pruneShare) || now.Sub(pruned) >= pruneInterval {
			if err := h.prune(ctx, limits, now); err == nil {
				pruned = now
				h.added.Add(-added)
			} else if ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Failed to delete old Changes", "retryAfter", checkInterval)
			}
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}
