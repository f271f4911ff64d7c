// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"sync"

	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
)

// slots bounds how many branches are written at once, in total and of one repository. Namespaces share the slots fairly.
type slots struct {
	all           *fairshare.Slots
	perRepository int

	mu sync.Mutex
	// of has the slots of each repository in use, by URL.
	of map[string]*repositorySlots
}

type repositorySlots struct {
	*fairshare.Slots

	users int
}

func newSlots(all, perRepository int) *slots {
	return &slots{all: fairshare.New(all), perRepository: perRepository, of: map[string]*repositorySlots{}}
}

// branchSlot is the slot of a branch that is being written.
type branchSlot struct {
	slots      *slots
	repository *repositorySlots
	branch     branchKey
	// giveBack releases the slot; nil while it is not held.
	giveBack func()
}

// acquire waits for a slot, first of the repository, so that its waiters do not block other repositories.
func (s *slots) acquire(ctx context.Context, branch branchKey) (*branchSlot, error) {
	slot := &branchSlot{slots: s, repository: s.use(branch.url), branch: branch}
	if err := slot.acquire(ctx); err != nil {
		s.leave(branch.url)
		return nil, err
	}
	return slot, nil
}

func (b *branchSlot) acquire(ctx context.Context) error {
	owner := b.branch.repository.Namespace
	one, err := b.repository.Acquire(ctx, owner)
	if err != nil {
		return err
	}
	other, err := b.slots.all.Acquire(ctx, owner)
	if err != nil {
		one()
		return err
	}
	activeWorkers.Inc()
	b.giveBack = func() {
		activeWorkers.Dec()
		other()
		one()
		b.giveBack = nil
	}
	return nil
}

// giveWay releases the slot to waiters, if there are any, and acquires it again.
func (b *branchSlot) giveWay(ctx context.Context) error {
	if !b.contended() {
		return nil
	}
	b.giveBack()
	return b.acquire(ctx)
}

// without calls a function without the slot, so that other branches are written meanwhile. If the slot cannot be acquired again, the error
// is that of ctx.
func (b *branchSlot) without(ctx context.Context, call func() error) error {
	b.giveBack()
	err := call()
	if ended := b.acquire(ctx); ended != nil {
		return ended
	}
	return err
}

// contended reports whether other branches wait for the slot.
func (b *branchSlot) contended() bool {
	return b.slots.all.Contended() || b.repository.Contended()
}

// release releases the slot.
func (b *branchSlot) release() {
	if b.giveBack != nil {
		b.giveBack()
	}
	b.slots.leave(b.branch.url)
}

func (s *slots) use(url string) *repositorySlots {
	s.mu.Lock()
	defer s.mu.Unlock()
	repository, ok := s.of[url]
	if !ok {
		repository = &repositorySlots{Slots: fairshare.New(s.perRepository)}
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
