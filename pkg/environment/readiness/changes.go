// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// batchInterval is how long changes are batched. An environment is notified at most once in it.
const batchInterval = time.Second

// changes batches the environments whose workloads have changed.
type changes struct {
	clock   clock.Clock
	changed func(environment types.NamespacedName)

	mu           sync.Mutex
	environments sets.Set[types.NamespacedName]
	// pending has a value if there are environments.
	pending chan struct{}
}

func newChanges(clock clock.Clock, changed func(types.NamespacedName)) *changes {
	return &changes{clock: clock, changed: changed, environments: sets.New[types.NamespacedName](), pending: make(chan struct{}, 1)}
}

func (c *changes) add(environment types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.environments.Insert(environment)
	select {
	case c.pending <- struct{}{}:
	default:
	}
}

// run notifies of changes until ctx ends.
func (c *changes) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.pending:
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(batchInterval):
		}
		for environment := range c.take() {
			c.changed(environment)
		}
	}
}

func (c *changes) take() sets.Set[types.NamespacedName] {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.environments
	c.environments = sets.New[types.NamespacedName]()
	select {
	case <-c.pending:
	default:
	}
	return taken
}
