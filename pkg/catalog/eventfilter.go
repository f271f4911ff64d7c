// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
)

// eventFilter decides which events of source namespaces are relevant to catalogs.
type eventFilter struct {
	mu sync.Mutex
	// bySource are the catalogs by source namespace, which is immutable, and UID.
	bySource map[string]map[types.UID]*catalogFilter
}

// catalogFilter is the part of a filter that is about one catalog. Only hashes and recorded change, under the mutex of eventFilter.
type catalogFilter struct {
	generation int64
	rules      capture.Rules
	// held are the workloads that the catalog offers.
	held sets.Set[reference]
	// hashes are those of the content that was last observed in the source. The hash of a deleted workload is empty.
	hashes map[reference]string
	// recorded are the hashes of the content that was read for the last record.
	recorded map[reference]string
}

func newEventFilter() *eventFilter {
	return &eventFilter{bySource: map[string]map[types.UID]*catalogFilter{}}
}

// set adds or updates a catalog. The hashes of a catalog whose spec has changed are dropped.
func (f *eventFilter) set(catalog *v1alpha1.AppCatalog) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.bySource[catalog.Spec.SourceNamespace][catalog.UID]
	next := &catalogFilter{generation: catalog.Generation, held: sets.New[reference](), hashes: map[reference]string{}}
	for _, entry := range catalog.Status.Workloads {
		next.held.Insert(reference{Kind: entry.Kind, Name: entry.Name})
	}
	if before != nil && before.generation == next.generation {
		next.rules, next.hashes, next.recorded = before.rules, before.hashes, before.recorded
	} else {
		var err error
		if next.rules, err = capture.NewRules(&catalog.Spec); err != nil {
			return err
		}
	}
	if f.bySource[catalog.Spec.SourceNamespace] == nil {
		f.bySource[catalog.Spec.SourceNamespace] = map[types.UID]*catalogFilter{}
	}
	f.bySource[catalog.Spec.SourceNamespace][catalog.UID] = next
	return nil
}

// forget removes a catalog.
func (f *eventFilter) forget(catalog *v1alpha1.AppCatalog) {
	f.mu.Lock()
	defer f.mu.Unlock()
	namespace := catalog.Spec.SourceNamespace
	delete(f.bySource[namespace], catalog.UID)
	if len(f.bySource[namespace]) == 0 {
		delete(f.bySource, namespace)
	}
}

// observed adds the hashes of content that was read from the source. Hashes from events are newer, and are kept.
func (f *eventFilter) observed(catalog *v1alpha1.AppCatalog, hashes map[reference]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.bySource[catalog.Spec.SourceNamespace][catalog.UID]
	if of == nil || of.generation != catalog.Generation {
		return
	}
	of.recorded = hashes
	for workload, hash := range hashes {
		if _, newer := of.hashes[workload]; !newer {
			of.hashes[workload] = hash
		}
	}
}

// catalogs returns the catalogs of a source namespace.
func (f *eventFilter) catalogs(namespace string) []*catalogFilter {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.bySource[namespace]))
}

// follows reports whether the catalog selects or holds an object of its source namespace.
func (f *catalogFilter) follows(object *unstructured.Unstructured) bool {
	workload, ok := capture.ReferenceTo(object)
	return ok && (f.held.Has(workload) || f.rules.Selection.Selects(object))
}

// relevance is whether an event is recorded. Its values are those of the label reason of the metric of ignored events.
type relevance string

const (
	// relevant: a catalog selects or holds the object, and its content has changed.
	relevant relevance = "relevant"
	// unchanged: the content is the same. Most events change a status, or fields that catalogs ignore.
	unchanged relevance = "unchanged"
	// notFollowed: no catalog selects or holds the object.
	notFollowed relevance = "not_followed"
)

// relevance returns the relevance of an event to the catalogs of its namespace, and records the content of the object as observed. isFirst
// is true if it is relevant only because nothing was known to compare it with.
func (f *eventFilter) relevance(object *unstructured.Unstructured, removed bool) (out relevance, isFirst bool) {
	workload, _ := capture.ReferenceTo(object)
	out, isFirst = notFollowed, true
	for _, of := range f.catalogs(object.GetNamespace()) {
		if !of.follows(object) {
			continue
		}
		hash, err := of.hashOf(object, removed)
		if err != nil {
			return relevant, false // The error is reported when the object is read to be recorded.
		}
		if changed, known := f.replace(of, workload, hash); changed {
			out, isFirst = relevant, isFirst && !known
		} else if out == notFollowed {
			out = unchanged
		}
	}
	return out, isFirst && out == relevant
}

// hashOf returns the hash of the content of an object, empty if it was deleted.
func (f *catalogFilter) hashOf(object *unstructured.Unstructured, removed bool) (string, error) {
	if removed {
		return "", nil
	}
	content, err := capture.Capture(object, f.rules.Ignored)
	return content.Hash, err
}

// isRecorded reports whether all catalogs that follow an object have recorded its content with their last reading.
func (f *eventFilter) isRecorded(object *unstructured.Unstructured, removed bool) bool {
	workload, _ := capture.ReferenceTo(object)
	recorded := false
	for _, of := range f.catalogs(object.GetNamespace()) {
		if !of.follows(object) {
			continue
		}
		if hash, err := of.hashOf(object, removed); err != nil || !f.hasRecorded(of, workload, hash) {
			return false
		}
		recorded = true
	}
	return recorded
}

// hasRecorded reports whether the content of an object that was last recorded has a hash.
func (f *eventFilter) hasRecorded(of *catalogFilter, workload reference, hash string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	recorded, known := of.recorded[workload]
	return known && recorded == hash
}

// replace sets the hash of an object, empty if it is deleted, and reports whether it has changed, and whether it was known before.
func (f *eventFilter) replace(of *catalogFilter, workload reference, hash string) (changed, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, known := of.hashes[workload]
	of.hashes[workload] = hash
	return !known || before != hash, known
}
