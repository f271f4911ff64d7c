// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// feed is one type, shared by the pipelines that select it.
type feed struct {
	id feedID
	// lock is held while the type is listed, and while a change is reported. Unlike a mutex, waiting for it ends with a context.
	lock *semaphore.Weighted
	// subscribers are all pipelines that select the type, watching those that receive changes. Both slices are replaced, never modified, and
	// guarded by Observer.mu.
	subscribers, watching []*subscriber
}

// subscribe replaces the subscribers.
func (f *feed) subscribe(subscribers []*subscriber) {
	f.subscribers = subscribers
	f.watching = slices.DeleteFunc(slices.Clone(subscribers), func(t *subscriber) bool { return t.poll })
}

// subscriber is the subscription of a pipeline to a type.
type subscriber struct {
	want
	feed *feed

	// gate is held during a call of the target.
	gate   sync.Mutex
	target Target
	ended  bool

	// Guarded by the lock of the feed: the resourceVersion of the last list, and the known definitions.
	position string
	known    sets.Set[item.Key]
	objects  atomic.Int64

	// Guarded by Observer.mu: the number of lists that were requested and served; the number that must be served before the state is known;
	// the urgency of the requests; and the error of the last list.
	requested, served, needed int
	urgency                   ledger.Urgency
	failure                   string
}

// report calls the target, unless the subscription has ended.
func (t *subscriber) report(call func(Target)) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if !t.ended {
		call(t.target)
	}
}

// end ends the subscription. It waits for a running call of the target.
func (t *subscriber) end() {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.ended = true
}

// request requests a list.
func (t *subscriber) request(urgency ledger.Urgency) {
	t.requested++
	t.urgency = max(t.urgency, urgency)
}

// need requests a list without which the state is unknown.
func (t *subscriber) need(urgency ledger.Urgency) {
	t.request(urgency)
	t.needed = t.requested
}

func (t *subscriber) due() bool { return t.served < t.requested }

// itemOf returns the item of an object, and whether it is reported. Objects that pipelines create are not, because each report would create
// more of them.
func (t *subscriber) itemOf(object *unstructured.Unstructured) (item.Item, bool) {
	if t.feed.id.kind == item.CustomResourceDefinition {
		return item.FromCRD(object)
	}
	return item.FromMetadata(t.gvk, object), !t.isMade(object)
}

// conversion converts an object for subscribers. They agree on its kind, except for pipelines that were set before a definition was replaced
// by one of another kind.
type conversion struct {
	object *unstructured.Unstructured
	// by is the subscriber whose item it is.
	by       *subscriber
	item     item.Item
	reported bool
}

// itemFor is itemOf, called once for all subscribers that agree.
func (c *conversion) itemFor(t *subscriber) (item.Item, bool) {
	if c.by == nil || c.by.gvk != t.gvk {
		c.by = t
		c.item, c.reported = t.itemOf(c.object)
	}
	return c.item, c.reported
}

// isMade reports whether a pipeline has created an object. On objects of other types the label has no meaning.
func (t *subscriber) isMade(object *unstructured.Unstructured) bool {
	switch t.gvk.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "ConfigMap"}:
		_, made := object.GetLabels()[v1alpha1.LabelPipeline]
		return made
	}
	return false
}

// selects reports whether the pipeline selects an object of the type.
func (t *subscriber) selects(key item.Key) bool { return t.filter == nil || t.filter.matches(key.Name) }

// supersedes reports whether the last list was newer than a change.
func (t *subscriber) supersedes(resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, t.position)
	return err == nil && order <= 0
}

// changed reports a change. The caller holds the lock of the feed.
func (f *feed) changed(subscribers []*subscriber, change watch.Change) {
	converted := conversion{object: change.Object}
	for _, t := range subscribers {
		it, reported := converted.itemFor(t)
		exists := reported && change.Operation != watch.Delete
		if t.selects(it.Key) && !t.supersedes(change.Object.GetResourceVersion()) {
			if reported || t.known != nil {
				t.count(it.Key, change.Operation, exists)
			}
			t.report(func(target Target) {
				if exists {
					target.Upsert(it, ledger.Debounced)
				} else {
					target.Remove(it.Key)
				}
			})
		}
	}
}

// counted records the number of objects in a list.
func (t *subscriber) counted(seen sets.Set[item.Key]) {
	if t.feed.id.kind == item.CustomResourceDefinition {
		t.known = seen.Clone()
		for key := range seen {
			if !t.selects(key) {
				t.known.Delete(key)
			}
		}
		seen = t.known
	}
	t.objects.Store(int64(seen.Len()))
}

// count updates the number of objects. A definition counts once it is established, which is an update.
func (t *subscriber) count(key item.Key, operation watch.Operation, exists bool) {
	switch {
	case t.known != nil:
		if t.known.Delete(key); exists {
			t.known.Insert(key)
		}
		t.objects.Store(int64(t.known.Len()))
	case operation == watch.Create:
		t.objects.Add(1)
	case operation == watch.Delete:
		t.objects.Add(-1)
	}
}
