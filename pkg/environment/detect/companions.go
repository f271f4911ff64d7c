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

// typesPeriod is how often it is found out whether the cluster has the Gateway API.
const typesPeriod = time.Minute

// builtInCompanions are the types that every cluster has of what is about workloads without being referred to. A new one can belong to
// any environment of its namespace: which, plans say.
var builtInCompanions = []schema.GroupVersionResource{
	{Version: "v1", Resource: "services"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// companions are the versions of what is about workloads that watches have brought, and the namespaces in which some has changed that
// environments have not heard of. They are not kept: when a process starts, everything is planned.
type companions struct {
	hasher plan.Hasher

	mu sync.Mutex
	// types are those that are watched.
	types   sets.Set[schema.GroupVersionResource]
	known   map[companionKey]string
	changed sets.Set[string]
}

type companionKey struct {
	schema.GroupVersionResource
	types.NamespacedName
}

func newCompanions(hasher plan.Hasher) *companions {
	return &companions{
		hasher: hasher, types: sets.New(builtInCompanions...), known: map[companionKey]string{}, changed: sets.New[string](),
	}
}

// discover finds out which types there are now, and returns them. While that cannot be found out, they stay.
func (c *companions) discover(mapper kubewatch.KindMapper) []schema.GroupVersionResource {
	types := sets.New(builtInCompanions...)
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

// isAbout says whether a watch brings what is about workloads.
func (c *companions) isAbout(watch kubewatch.Watch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types.Has(watch.Resource)
}

// note takes an event up, and says whether an object is another than it was. The first event after a list is one of an object that is
// not known.
func (c *companions) note(watch kubewatch.Watch, change kubewatch.Change) (isNews bool) {
	of := companionKey{watch.Resource, types.NamespacedName{Namespace: change.Object.GetNamespace(), Name: change.Object.GetName()}}
	version := ""
	if change.Operation != kubewatch.Delete {
		var err error
		if version, err = plan.Hash(c.hasher, change.Object); err != nil {
			return true // Plans will say why.
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

// listed takes up that a watch begins, or begins again: what happened before is not known.
func (c *companions) listed(watch kubewatch.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of := range c.known {
		if of.GroupVersionResource == watch.Resource && of.Namespace == watch.Namespace {
			delete(c.known, of)
		}
	}
	c.changed.Insert(watch.Namespace)
}

// retain forgets what is not in sources any more.
func (c *companions) retain(sources map[string][]types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.known, func(of companionKey, _ string) bool { return sources[of.Namespace] == nil })
}

// take says whether something has changed in a namespace, and forgets it.
func (c *companions) take(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.changed.Delete(namespace)
	return c.changed.Has(namespace)
}
