// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// recoveryTimeout is how long Start waits for the stored facts. Without them, changes that were made before have no
// author, which is better than not being reported.
const recoveryTimeout = 10 * time.Second

// Facts is a source of facts.
type Facts interface {
	// Follow calls receive with facts until ctx ends: first with all stored facts, as recovered, then with new ones.
	// There may be several followers; each receives all facts.
	Follow(ctx context.Context, receive func(facts []Fact, recovered bool))
	// Forget removes the lasting facts of deleted objects.
	Forget(uids ...types.UID)
	// Lags returns the stored lags of the sources, as StoreLags has received them last for a controller; none if it has not.
	Lags(ctx context.Context, controller string) (Lags, error)
	// StoreLags stores the lags of the sources for the next term.
	StoreLags(ctx context.Context, controller string, lags Lags) error
}

// Start runs the joiner and its source of facts in a group until ctx ends. It returns when the stored facts and lags have been
// added.
func (j *Joiner) Start(ctx context.Context, group *wait.Group) {
	group.StartWithContext(ctx, j.Run)
	if j.config.Facts == nil {
		return
	}
	lags := j.resumeLags(ctx)
	group.StartWithContext(ctx, func(ctx context.Context) { j.storeLags(ctx, lags) })
	recovered := make(chan struct{})
	done := sync.OnceFunc(func() { close(recovered) })
	group.StartWithContext(ctx, func(ctx context.Context) {
		j.config.Facts.Follow(ctx, func(facts []Fact, recovered bool) {
			j.Add(facts, recovered)
			done()
		})
	})
	select {
	case <-recovered:
	case <-time.After(recoveryTimeout):
		klog.FromContext(ctx).Info("Timed out reading attribution facts, starting without them", "timeout", recoveryTimeout)
	case <-ctx.Done():
	}
}
