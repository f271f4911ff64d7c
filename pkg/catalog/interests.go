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

// interests say which objects of sources matter to catalogs, and when one has changed in what counts.
type interests struct {
	mu sync.Mutex
	// of are the interests of catalogs, by the namespaces that they follow, which never change.
	of map[string]map[types.UID]*interest
}

// interest is that of one catalog. Only hashes changes, under the mutex of interests.
type interest struct {
	generation int64
	rules      capture.Rules
	holds      sets.Set[reference]
	// hashes are those of the content that was last seen in the source.
	hashes map[reference]string
}

func newInterests() *interests { return &interests{of: map[string]map[types.UID]*interest{}} }

// set takes a catalog as it is now.
func (i *interests) set(catalog *v1alpha1.AppCatalog) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.of[catalog.Spec.SourceNamespace][catalog.UID]
	next := &interest{generation: catalog.Generation, holds: sets.New[reference](), hashes: map[reference]string{}}
	for _, entry := range catalog.Status.Workloads {
		next.holds.Insert(reference{Kind: entry.Kind, Name: entry.Name})
	}
	if before != nil && before.generation == next.generation {
		next.rules, next.hashes = before.rules, before.hashes
	} else {
		var err error
		if next.rules, err = capture.NewRules(&catalog.Spec); err != nil {
			return err
		}
	}
	if i.of[catalog.Spec.SourceNamespace] == nil {
		i.of[catalog.Spec.SourceNamespace] = map[types.UID]*interest{}
	}
	i.of[catalog.Spec.SourceNamespace][catalog.UID] = next
	return nil
}

// forget lets go of a catalog.
func (i *interests) forget(catalog *v1alpha1.AppCatalog) {
	i.mu.Lock()
	defer i.mu.Unlock()
	namespace := catalog.Spec.SourceNamespace
	delete(i.of[namespace], catalog.UID)
	if len(i.of[namespace]) == 0 {
		delete(i.of, namespace)
	}
}

// taken notes what a catalog knows of its source.
func (i *interests) taken(catalog *v1alpha1.AppCatalog, hashes map[reference]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of := i.of[catalog.Spec.SourceNamespace][catalog.UID]
	if of == nil || of.generation != catalog.Generation {
		return
	}
	for workload, hash := range hashes {
		if _, newer := of.hashes[workload]; !newer {
			of.hashes[workload] = hash
		}
	}
}

// in are the interests in a namespace.
func (i *interests) in(namespace string) []*interest {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Values(i.of[namespace]))
}

// wants says whether an object of the namespace matters to the catalog.
func (i *interest) wants(object *unstructured.Unstructured) bool {
	workload, ok := capture.ReferenceTo(object)
	return ok && (i.holds.Has(workload) || i.rules.Selection.Selects(object))
}

// meaning is what an event means to catalogs, as metrics call it.
type meaning string

const (
	// news is the content of an object that a catalog selects or holds, and that is not what it was.
	news meaning = "news"
	// unchanged is the same content: most events change a status, or what catalogs ignore.
	unchanged meaning = "unchanged"
	// notFollowed is an object that no catalog selects or holds.
	notFollowed meaning = "not_followed"
)

// meaning says what an event means to those catalogs that it means most to.
func (i *interests) meaning(object *unstructured.Unstructured, removed bool) meaning {
	workload, _ := capture.ReferenceTo(object)
	out := notFollowed
	for _, of := range i.in(object.GetNamespace()) {
		if !of.wants(object) {
			continue
		}
		hash := ""
		if !removed {
			content, err := capture.Capture(object, of.rules.Ignored)
			if err != nil {
				return news // Who reads the object again will say why.
			}
			hash = content.Hash
		}
		if i.replace(of, workload, hash) {
			out = news
		} else if out == notFollowed {
			out = unchanged
		}
	}
	return out
}

// replace notes the content of an object, empty when it is gone, and says whether it was another.
func (i *interests) replace(of *interest, workload reference, hash string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, known := of.hashes[workload]
	of.hashes[workload] = hash
	return !known || before != hash
}
