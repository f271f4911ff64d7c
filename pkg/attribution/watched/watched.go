// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watched answers of which objects it matters who changes them, where those are the ones that are watched.
package watched

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/attribution"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// Objects are those of the types and in the namespaces that are watched, none at first. They may be used concurrently.
type Objects struct {
	// collections have no names. The set is not changed, but replaced.
	collections atomic.Pointer[sets.Set[attribution.Object]]
}

// Set says what is watched from now on.
func (o *Objects) Set(watches []kubewatch.Watch) {
	collections := sets.New[attribution.Object]()
	for _, watch := range watches {
		collections.Insert(attribution.Object{GroupResource: watch.Resource.GroupResource(), Namespace: watch.Namespace})
	}
	o.collections.Store(&collections)
}

// Has says whether an object, or all objects of a type in a namespace, are among them.
func (o *Objects) Has(object attribution.Object) bool {
	object.Name = ""
	collections := o.collections.Load()
	return collections != nil && collections.Has(object)
}
