// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import "sync"

// progressHub sends requests for progress to the watches that they are for. Like etcd's client, it groups watches by the
// metadata of their context.
type progressHub struct {
	mu      sync.Mutex
	watches map[string]map[chan struct{}]struct{}
}

func newProgressHub() *progressHub {
	return &progressHub{watches: map[string]map[chan struct{}]struct{}{}}
}

// join adds a watch to a group. Its channel holds a request until the watch takes
// it. leave must be called when the watch ends.
func (h *progressHub) join(group string) (requested chan struct{}, leave func()) {
	requested = make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[group] == nil {
		h.watches[group] = map[chan struct{}]struct{}{}
	}
	h.watches[group][requested] = struct{}{}
	return requested, func() { h.leave(group, requested) }
}

func (h *progressHub) leave(group string, requested chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches[group], requested)
	if len(h.watches[group]) == 0 {
		delete(h.watches, group)
	}
}

// request requests a progress report from every watch of a group.
func (h *progressHub) request(group string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for requested := range h.watches[group] {
		select {
		case requested <- struct{}{}:
		default: // A request is waiting already and will be answered with what is current then.
		}
	}
}
