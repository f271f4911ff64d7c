// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/source"
)

// reach knows whether sources can be read.
type reach struct {
	// own is the server's own namespace, which is nobody's source.
	own string
	// exists says whether there is a namespace.
	exists func(namespace string) bool

	mu sync.Mutex
	// failures are why watches are not open.
	failures map[source.Watch]error
}

func newReach(own string, exists func(namespace string) bool) *reach {
	return &reach{own: own, exists: exists, failures: map[source.Watch]error{}}
}

// update notes how a watch is.
func (r *reach) update(watch source.Watch, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if failure == nil {
		delete(r.failures, watch)
		return
	}
	r.failures[watch] = failure
}

// retain drops what is known of all watches but those given.
func (r *reach) retain(running []source.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.failures, func(watch source.Watch, _ error) bool { return !slices.Contains(running, watch) })
}

// refuses says whether a namespace is not followed, whoever asks for it.
func (r *reach) refuses(namespace string) bool { return r.own != "" && namespace == r.own }

// of says how a namespace can be read.
func (r *reach) of(namespace string) verdict {
	if r.refuses(namespace) {
		return verdict{v1alpha1.ReasonSourceIsServer, fmt.Sprintf(
			"%s is the namespace of this server, and what keeps it going is nothing to be copied; make a catalog of another namespace", namespace)}
	}
	if !r.exists(namespace) {
		return verdict{v1alpha1.ReasonSourceNotFound, fmt.Sprintf("There is no namespace %s", namespace)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var failures []string
	for watch, failure := range r.failures {
		if watch.Namespace == namespace {
			failures = append(failures, fmt.Sprintf("%s: %v", watch, failure))
		}
	}
	if len(failures) == 0 {
		return verdict{}
	}
	slices.Sort(failures)
	return verdict{v1alpha1.ReasonSourceUnreachable, "Some of the source cannot be followed: " + strings.Join(failures, "; ")}
}
