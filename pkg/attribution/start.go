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

// recoveryPatience is how long a start waits for the facts that are there already. Without them the changes that were made
// meanwhile have no author, which is better than not being told.
const recoveryPatience = 10 * time.Second

// Facts are the reports of who made changes.
type Facts interface {
	// Follow tells of facts until ctx ends: in a first call of all that are there, then of those that come. Several may
	// follow at once, and each is told of all.
	Follow(ctx context.Context, told func(facts []Fact, recovered bool))
	// Forget says that objects are gone, and with them the need for their lasting facts.
	Forget(uids ...types.UID)
}

// Start has group run the joiner, and give it the facts of its configuration, until ctx ends. It returns when those are
// known that are there already.
func (j *Joiner) Start(ctx context.Context, group *wait.Group) {
	group.StartWithContext(ctx, j.Run)
	if j.config.Facts == nil {
		return
	}
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
	case <-time.After(recoveryPatience):
		klog.FromContext(ctx).Info("Starting without the reports of who made changes, which cannot be read")
	case <-ctx.Done():
	}
}
