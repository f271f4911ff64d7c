// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// errOpening is the state of a watch that has not been open yet, and has not failed.
var errOpening = errors.New("it is being opened")

// reachability has which source namespaces can be read.
type reachability struct {
	// own is the namespace of the server, which cannot be a source.
	own string
	// exists reports whether a namespace exists.
	exists func(namespace string) bool
	// builder returns the environment whose target is a namespace, nil if there is none. A target cannot be a source.
	builder func(namespace string) *v1alpha1.Environment

	mu sync.Mutex
	// watches has why each watch is not open, by namespace and watch; nil for an open watch.
	watches map[string]map[kubewatch.Watch]error
}

func newReachability(own string, exists func(namespace string) bool, builder func(namespace string) *v1alpha1.Environment) *reachability {
	return &reachability{own: own, exists: exists, builder: builder, watches: map[string]map[kubewatch.Watch]error{}}
}

// update records the state of a watch: why it is not open, nil if it is.
func (r *reachability) update(watch kubewatch.Watch, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.watches[watch.Namespace]
	if _, wanted := of[watch]; wanted {
		of[watch] = failure
	}
}

// setWatches replaces the set of watches. The state of a watch that was in the set is kept.
func (r *reachability) setWatches(watches []kubewatch.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.watches
	r.watches = map[string]map[kubewatch.Watch]error{}
	for _, watch := range watches {
		failure, known := before[watch.Namespace][watch]
		if !known {
			failure = errOpening
		}
		if r.watches[watch.Namespace] == nil {
			r.watches[watch.Namespace] = map[kubewatch.Watch]error{}
		}
		r.watches[watch.Namespace][watch] = failure
	}
}

// refusal returns why a namespace cannot be the source of any catalog. It returns the zero value if it can.
func (r *reachability) refusal(namespace string) conditions.Reason {
	if r.own != "" && namespace == r.own {
		return conditions.Reason{Code: v1alpha1.ReasonSourceIsServer, Message: fmt.Sprintf(
			"%s is the namespace of this server, whose workloads must not be copied; make a catalog of another namespace", namespace)}
	}
	if by := r.builder(namespace); by != nil {
		return conditions.Reason{Code: v1alpha1.ReasonSourceIsTarget, Message: fmt.Sprintf(
			"%s is the target of Environment %s/%s, and copies must not be copied again; make a catalog of another namespace", namespace,
			by.Namespace, by.Name)}
	}
	return conditions.Reason{}
}

// of returns why a namespace cannot be read. It returns the zero value once all of its watches have been opened.
func (r *reachability) of(namespace string) conditions.Reason {
	if refusal := r.refusal(namespace); !refusal.IsZero() {
		return refusal
	}
	if !r.exists(namespace) {
		return conditions.Reason{Code: v1alpha1.ReasonSourceNotFound, Message: fmt.Sprintf("There is no namespace %s", namespace)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var failures []string
	open, all := 0, len(r.watches[namespace])
	for watch, failure := range r.watches[namespace] {
		switch {
		case failure == nil:
			open++
		case !errors.Is(failure, errOpening):
			failures = append(failures, fmt.Sprintf("%s: %v", watch, failure))
		}
	}
	switch {
	case len(failures) > 0:
		slices.Sort(failures)
		return conditions.Reason{Code: v1alpha1.ReasonSourceUnreachable,
			Message: "Some of the source cannot be followed: " + strings.Join(failures, "; ")}
	case open < all || all == 0:
		return conditions.Progressing("The source is not followed yet")
	}
	return conditions.Reason{}
}
