// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/environment/plan"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// discoveryInterval is how often the availability of the Gateway API is checked.
const discoveryInterval = time.Minute

// builtInAttachedTypes are the attached types that every cluster has. A new object may be attached to workloads of any
// environment of its source; only a plan shows which.
var builtInAttachedTypes = []schema.GroupVersionResource{
	{Version: "v1", Resource: "services"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// attachedObjects holds the versions of attached objects and the namespaces with unprocessed changes. It is not persistent,
// because everything is planned when a process starts.
type attachedObjects struct {
	hasher plan.Hasher

	mu sync.Mutex
	// types are the watched types.
	types   sets.Set[schema.GroupVersionResource]
	known   map[attachedKey]string
	changed sets.Set[string]
}

type attachedKey struct {
	schema.GroupVersionResource
	types.NamespacedName
}

func newAttachedObjects(hasher plan.Hasher) *attachedObjects {
	return &attachedObjects{
		hasher: hasher, types: sets.New(builtInAttachedTypes...), known: map[attachedKey]string{}, changed: sets.New[string](),
	}
}

// discover returns the available types. If discovery fails, they stay as they were.
func (c *attachedObjects) discover(mapper kubewatch.KindMapper) []schema.GroupVersionResource {
	types := sets.New(builtInAttachedTypes...)
	unknown := false
	for _, kind := range plan.GatewayAPIKinds() {
		mapping, err := mapper.RESTMapping(kind)
		if err == nil {
			types.Insert(mapping.Resource)
		}
		unknown = unknown || err != nil && !meta.IsNoMatchError(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !unknown {
		c.types = types
	}
	return c.types.UnsortedList()
}

// includes reports whether a watch is for an attached type.
func (c *attachedObjects) includes(watch kubewatch.Watch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types.Has(watch.Resource)
}

// observe notes an event and reports whether the object has changed. The first event of an object after a list counts as a
// change.
func (c *attachedObjects) observe(watch kubewatch.Watch, change kubewatch.Change) (isNews bool) {
	of := attachedKey{watch.Resource, types.NamespacedName{Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()}}
	version := ""
	if change.Operation != kubewatch.Delete {
		var err error
		if version, err = plan.Hash(c.hasher, change.Object); err != nil {
			return true // The plan reports the error.
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.known[of]; ok && before == version {
		return false
	}
	if c.known[of] = version; version == "" {
		delete(c.known, of)
	}
	c.changed.Insert(of.Namespace)
	return true
}

// relisted forgets the versions of a watch that starts or restarts, because events may have been missed.
func (c *attachedObjects) relisted(watch kubewatch.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of := range c.known {
		if of.GroupVersionResource == watch.Resource && of.Namespace == watch.Namespace {
			delete(c.known, of)
		}
	}
	c.changed.Insert(watch.Namespace)
}

// retain forgets the objects of namespaces that are no longer sources.
func (c *attachedObjects) retain(sources map[string][]types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(of attachedKey, _ string) bool { return sources[of.Namespace] == nil })
}

// take reports whether something has changed in a namespace, and resets that.
func (c *attachedObjects) take(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Delete(namespace)
	return c.changed.Has(namespace)
}
