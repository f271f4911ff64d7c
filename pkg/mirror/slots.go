// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"
)

// slots bound the branches that are written at once, in all and of one repository.
type slots struct {
	all           chan struct{}
	perRepository int

	mu sync.Mutex
	// of are those of each repository, by URL, that is being written or waited for.
	of map[string]*repositorySlots
}

type repositorySlots struct {
	taken chan struct{}
	users int
}

func newSlots(all, perRepository int) *slots {
	return &slots{all: make(chan struct{}, all), perRepository: perRepository, of: map[string]*repositorySlots{}}
}

// acquire waits for a slot, first of the repository, so that those who wait for it keep
// nobody else from one. release gives it back.
func (s *slots) acquire(ctx context.Context, url string) (release func(), err error) {
	repository := s.use(url)
	if err := take(ctx, repository.taken); err != nil {
		s.leave(url)
		return nil, err
	}
	if err := take(ctx, s.all); err != nil {
		<-repository.taken
		s.leave(url)
		return nil, err
	}
	activeWorkers.Inc()
	return func() {
		activeWorkers.Dec()
		<-s.all
		<-repository.taken
		s.leave(url)
	}, nil
}

func take(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) use(url string) *repositorySlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	repository, ok := s.of[url]
	if !ok {
		repository = &repositorySlots{taken: make(chan struct{}, s.perRepository)}
		s.of[url] = repository
	}
	repository.users++
	return repository
}

func (s *slots) leave(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[url].users--; s.of[url].users == 0 {
		delete(s.of, url)
	}
}
