// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedcache holds the values that were used last, bounded by what they cost together.
package boundedcache

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache holds the values that were used last. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limit int64
	cost  func(V) int64

	mu   sync.Mutex
	used *simplelru.LRU[K, V]
	size int64
}

// New returns a cache of values that together cost no more than limit. cost returns what a value costs, such as its size in bytes; it is
// always the same for a value.
func New[K comparable, V any](limit int64, cost func(V) int64) *Cache[K, V] {
	c := &Cache[K, V]{limit: limit, cost: cost}
	// The size is positive, which is all that can be wrong.
	c.used, _ = simplelru.NewLRU(math.MaxInt, func(_ K, evicted V) { c.size -= c.cost(evicted) })
	return c
}

// Get returns the value of a key, and false if the cache does not have it.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Get(key)
}

// Put adds or replaces a value, unless it costs more than a half of the limit: it would displace the others. The cache then does not
// have the key.
func (c *Cache[K, V]) Put(key K, value V) {
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
