// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"sync"

	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// pendingVersions holds the versions that watches have reported and that are not recorded yet. The index does not know
// them, so without this a status update would count as another change of the content.
type pendingVersions struct {
	index *index.Index

	mu sync.Mutex
	of map[index.Object]string
}

func newPendingVersions(of *index.Index) *pendingVersions {
	return &pendingVersions{index: of, of: map[index.Object]string{}}
}

// observe notes a version and reports whether it is a change.
func (s *pendingVersions) observe(of index.Object, version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, waits := s.of[of]
	if waits && before == version {
		return false
	}
	_, differs := s.index.Differs(of, version)
	if waits || differs {
		s.of[of] = version
	}
	return differs
}

// forgetRecorded removes the versions of a namespace that the index knows now.
func (s *pendingVersions) forgetRecorded(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, version := range s.of {
		if _, differs := s.index.Differs(of, version); of.Namespace == namespace && !differs {
			delete(s.of, of)
		}
	}
}

// forgetWatch removes the versions that a watch has reported. The watch may have missed later ones.
func (s *pendingVersions) forgetWatch(watch kubewatch.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.of {
		if watchOf(index.Collection{Type: of.Type, Namespace: of.Namespace}) == watch {
			delete(s.of, of)
		}
	}
}
