// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/source"
)

// wanted says of which objects it matters who changes them: those of the types and in the namespaces that are watched.
type wanted struct {
	// collections have no names. The set is not changed, but replaced.
	collections atomic.Pointer[sets.Set[attribution.Object]]
}

func (w *wanted) set(watches []source.Watch) {
	collections := sets.New[attribution.Object]()
	for _, watch := range watches {
		collections.Insert(attribution.Object{GroupResource: watch.Resource.GroupResource(), Namespace: watch.Namespace})
	}
	w.collections.Store(&collections)
}

func (w *wanted) has(object attribution.Object) bool {
	object.Name = ""
	collections := w.collections.Load()
	return collections != nil && collections.Has(object)
}
