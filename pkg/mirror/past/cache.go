// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// cache holds the values that were used last, bounded by their cost. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	limit int64
	cost  func(V) int64

	mu   sync.Mutex
	used *simplelru.LRU[K, V]
	size int64
}

// newCache returns a cache of values that together cost no more than limit.
func newCache[K comparable, V any](limit int64, cost func(V) int64) *cache[K, V] {
	c := &cache[K, V]{limit: limit, cost: cost}
	// The size is positive, which is all that can be wrong.
	c.used, _ = simplelru.NewLRU(math.MaxInt, func(_ K, evicted V) { c.size -= c.cost(evicted) })
	return c
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Get(key)
}

// put adds a value, unless it costs more than a half of the limit: it would displace the others.
func (c *cache[K, V]) put(key K, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.Remove(key)
	cost := c.cost(value)
	if cost > c.limit/2 {
		return
	}
	c.used.Add(key, value)
	for c.size += cost; c.size > c.limit; {
		c.used.RemoveOldest()
	}
}
