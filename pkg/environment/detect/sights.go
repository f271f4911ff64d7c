// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"sync"

	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
)

// sights are the versions of objects that watches have told of and that wait to be recorded: until then, the index does not know
// them, and whoever writes a status would be taken for somebody who changes the content.
type sights struct {
	index *index.Index

	mu sync.Mutex
	of map[index.Object]string
}

func newSights(of *index.Index) *sights { return &sights{index: of, of: map[index.Object]string{}} }

// isNews notes a version that a watch tells of, and says whether it is another than what is known.
func (s *sights) isNews(of index.Object, version string) bool {
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

// settle forgets what the index knows now of a namespace.
func (s *sights) settle(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of, version := range s.of {
		if _, differs := s.index.Differs(of, version); of.Namespace == namespace && !differs {
			delete(s.of, of)
		}
	}
}

// missed lets go of what a watch has told of: it may have missed what came afterwards.
func (s *sights) missed(watch kubewatch.Watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.of {
		if watchOf(index.Collection{Type: of.Type, Namespace: of.Namespace}) == watch {
			delete(s.of, of)
		}
	}
}
