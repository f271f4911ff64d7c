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

// pause is how long changes gather before they are told of. So nobody hears of an environment more often.
const pause = time.Second

// changes are the environments of which something has changed and is not told of yet.
type changes struct {
	clock   clock.Clock
	changed func(environment types.NamespacedName)

	mu           sync.Mutex
	environments sets.Set[types.NamespacedName]
	// some has a value when there are environments.
	some chan struct{}
}

func newChanges(clock clock.Clock, changed func(types.NamespacedName)) *changes {
	return &changes{clock: clock, changed: changed, environments: sets.New[types.NamespacedName](), some: make(chan struct{}, 1)}
}

func (c *changes) add(environment types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.environments.Insert(environment)
	select {
	case c.some <- struct{}{}:
	default:
	}
}

// tell tells of changes until ctx ends.
func (c *changes) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.some:
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(pause):
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
	case <-c.some:
	default:
	}
	return taken
}
