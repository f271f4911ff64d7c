// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
)

// State returns the state of the observation of a pipeline.
func (o *Observer) State(uid types.UID) State {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.pipelines[uid]
	if !ok || p.types == nil {
		return State{}
	}
	state := State{Listed: true}
	for id, t := range p.subscribers {
		if id.kind == item.Instance {
			state.WatchedTypes++
		}
		state.Objects += t.objects.Load()
		state.Listed = state.Listed && t.served >= t.needed && (t.poll || o.watches[id].listed)
		if failure := o.failure(t); failure != "" {
			state.Failures = append(state.Failures, failure)
		}
	}
	slices.Sort(state.Failures)
	return state
}

// failure returns why a type cannot be listed or watched, or an empty string.
func (o *Observer) failure(t *subscriber) string {
	if t.failure != "" || t.poll {
		return t.failure
	}
	if why := o.watches[t.feed.id].failure; why != "" {
		return fmt.Sprintf("%s cannot be watched: %s", watch.Watch{Resource: t.feed.id.resource}, why)
	}
	return ""
}
