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
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// errOpening says that a watch has never been open yet, and has not failed.
var errOpening = errors.New("it is being opened")

// reach knows whether sources can be read.
type reach struct {
	// own is the server's own namespace, which is nobody's source.
	own string
	// exists says whether there is a namespace.
	exists func(namespace string) bool
	// builder is the environment that builds a namespace, nil if none does: what it copies is nobody's source.
	builder func(namespace string) *v1alpha1.Environment

	mu sync.Mutex
	// watches are those that there are, by their namespaces, with why they are not open.
	watches map[string]map[kubewatch.Watch]error
}

func newReach(own string, exists func(namespace string) bool, builder func(namespace string) *v1alpha1.Environment) *reach {
	return &reach{own: own, exists: exists, builder: builder, watches: map[string]map[kubewatch.Watch]error{}}
}

// update notes how a watch is.
func (r *reach) update(watch kubewatch.Watch, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.watches[watch.Namespace]
	if _, wanted := of[watch]; wanted {
		of[watch] = failure
	}
}

// retain says which watches there are from now on.
func (r *reach) retain(running []kubewatch.Watch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.watches
	r.watches = map[string]map[kubewatch.Watch]error{}
	for _, watch := range running {
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

// refusal is why a namespace is not followed, whoever asks for it.
func (r *reach) refusal(namespace string) verdict {
	if r.own != "" && namespace == r.own {
		return verdict{v1alpha1.ReasonSourceIsServer, fmt.Sprintf(
			"%s is the namespace of this server, and what keeps it going is nothing to be copied; make a catalog of another namespace", namespace)}
	}
	if by := r.builder(namespace); by != nil {
		return verdict{v1alpha1.ReasonSourceIsTarget, fmt.Sprintf(
			"%s is what Environment %s/%s builds, and copies are nothing to be copied; make a catalog of another namespace", namespace, by.Namespace, by.Name)}
	}
	return verdict{}
}

// refuses says whether a namespace is not followed, whoever asks for it.
func (r *reach) refuses(namespace string) bool { return !r.refusal(namespace).ok() }

// of says how a namespace can be read. It is followed from when all of its watches have been opened.
func (r *reach) of(namespace string) verdict {
	if refusal := r.refusal(namespace); !refusal.ok() {
		return refusal
	}
	if !r.exists(namespace) {
		return verdict{v1alpha1.ReasonSourceNotFound, fmt.Sprintf("There is no namespace %s", namespace)}
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
		return verdict{v1alpha1.ReasonSourceUnreachable, "Some of the source cannot be followed: " + strings.Join(failures, "; ")}
	case open < all || all == 0:
		return verdict{v1alpha1.ReasonProgressing, "The source is not followed yet"}
	}
	return verdict{}
}
