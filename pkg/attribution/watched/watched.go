// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watched holds the set of watched objects, to which attribution limits the facts that it keeps.
package watched

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/attribution"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// Objects is the set of objects whose type and namespace are watched. It is empty at first and safe for concurrent use.
type Objects struct {
	// collections holds objects without a name. The set is never modified, but replaced.
	collections atomic.Pointer[sets.Set[attribution.Object]]
}

// Set replaces the watches.
func (o *Objects) Set(watches []kubewatch.Watch) {
	collections := sets.New[attribution.Object]()
	for _, watch := range watches {
		collections.Insert(attribution.Object{GroupResource: watch.Resource.GroupResource(), Namespace: watch.Namespace})
	}
	o.collections.Store(&collections)
}

// Has reports whether an object is watched. An object without a name stands for all of its type in its namespace.
func (o *Objects) Has(object attribution.Object) bool {
	object.Name = ""
	collections := o.collections.Load()
	return collections != nil && collections.Has(object)
}
