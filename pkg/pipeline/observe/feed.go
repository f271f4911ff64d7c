// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// feed is one type, for all pipelines that take it.
type feed struct {
	id feedID
	// turn is held while the type is listed, and while a change of it is told.
	turn turn
	// takers are all who take the type, watching those who are told of changes. Both are replaced, never changed, and guarded by
	// Observer.mu.
	takers, watching []*taker
}

// take makes the takers those given.
func (f *feed) take(takers []*taker) {
	f.takers = takers
	f.watching = slices.DeleteFunc(slices.Clone(takers), func(t *taker) bool { return t.poll })
}

// taker is a pipeline that takes a type. All takers of a feed agree on the kind of its objects.
type taker struct {
	want
	feed *feed

	// gate is held while the target is told something.
	gate   sync.Mutex
	target Target
	ended  bool

	// Guarded by the turn of the feed: the resourceVersion of the last list, and the definitions that are known.
	position string
	known    sets.Set[item.Key]
	objects  atomic.Int64

	// Guarded by Observer.mu: how many lists have been asked for, how many of these have been served, how many have to be before what
	// there is is known, how urgently the others are asked for, and why the last one failed.
	asked, served, needed int
	how                   ledger.Urgency
	failure               string
}

// tell tells the target something, unless the pipeline takes the type no more.
func (t *taker) tell(tell func(Target)) {
	t.gate.Lock()
	defer t.gate.Unlock()
	if !t.ended {
		tell(t.target)
	}
}

// end returns when the target has been told the last.
func (t *taker) end() {
	t.gate.Lock()
	defer t.gate.Unlock()
	t.ended = true
}

// ask asks for a list.
func (t *taker) ask(how ledger.Urgency) {
	t.asked++
	t.how = max(t.how, how)
}

// need asks for a list without which it is not known what there is.
func (t *taker) need(how ledger.Urgency) {
	t.ask(how)
	t.needed = t.asked
}

func (t *taker) due() bool { return t.served < t.asked }

// itemOf is what is told of an object, and whether it is told of: what pipelines make themselves is not, since telling of it would make
// more of it.
func (t *taker) itemOf(object *unstructured.Unstructured) (item.Item, bool) {
	if t.feed.id.kind == item.CustomResourceDefinition {
		return item.FromCRD(object)
	}
	return item.FromMetadata(t.gvk, object), !t.isMade(object)
}

// isMade says whether a pipeline has made an object. The label says nothing about objects of other types.
func (t *taker) isMade(object *unstructured.Unstructured) bool {
	switch t.gvk.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "ConfigMap"}:
		_, made := object.GetLabels()[v1alpha1.LabelPipeline]
		return made
	}
	return false
}

// takes says whether the pipeline selects an object of the type.
func (t *taker) takes(key item.Key) bool { return t.filter == nil || t.filter.matches(key.Name) }

// supersedes says whether the last list told of what came with a change.
func (t *taker) supersedes(resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, t.position)
	return err == nil && order <= 0
}

// changed tells of a change. Who calls it has the turn of the feed.
func (f *feed) changed(takers []*taker, change watch.Change) {
	if len(takers) == 0 {
		return
	}
	it, told := takers[0].itemOf(change.Object)
	exists := told && change.Operation != watch.Delete
	for _, t := range takers {
		if t.takes(it.Key) && !t.supersedes(change.Object.GetResourceVersion()) {
			if told || t.known != nil {
				t.count(it.Key, change.Operation, exists)
			}
			t.tell(func(target Target) {
				if exists {
					target.Upsert(it, ledger.Debounced)
				} else {
					target.Remove(it.Key)
				}
			})
		}
	}
}

// counted notes how many objects a list has shown.
func (t *taker) counted(seen sets.Set[item.Key]) {
	if t.feed.id.kind == item.CustomResourceDefinition {
		t.known = seen.Clone()
		for key := range seen {
			if !t.takes(key) {
				t.known.Delete(key)
			}
		}
		seen = t.known
	}
	t.objects.Store(int64(seen.Len()))
}

// count follows how many objects there are. A definition exists once it is established, which is an update of it.
func (t *taker) count(key item.Key, operation watch.Operation, exists bool) {
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
