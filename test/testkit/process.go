// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"errors"
	"sync"
)

// ErrDead is the error of all that a dead process writes.
var ErrDead = errors.New("the process is dead")

// Process stands for the process under test. It counts its writes, to the store, the API or the cluster, and dies at one of them: that
// write and later ones fail with ErrDead. A test runs a scenario once to count the writes, then once for the death at each of them,
// starts the process again and compares the results. The zero value never dies. Methods can be called concurrently.
type Process struct {
	mu     sync.Mutex
	writes int
	// diesAt is the number of the write at which the process dies, from 1; 0 if it does not.
	diesAt       int
	loseResponse bool
	dead         bool
	onDeath      func()
}

// Start starts the process, again if it is dead. It dies at its write diesAt, counted from 1, or never if that is 0. onDeath, which may
// be nil, is called at each write of the dead process.
func (p *Process) Start(diesAt int, onDeath func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes, p.diesAt, p.dead, p.onDeath = 0, diesAt, false, onDeath
}

// LoseResponse sets whether the write at which the process dies takes effect, as if only its response were lost.
func (p *Process) LoseResponse(lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loseResponse = lost
}

// Kill lets the process die before its next write.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
}

// Writes returns how many writes there were since Start.
func (p *Process) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// Alive returns ErrDead once the process is dead.
func (p *Process) Alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return ErrDead
	}
	return nil
}

// Count counts a write that the caller makes if the result is nil.
func (p *Process) Count() error { return p.Write(func() error { return nil }) }

// Write counts a write and makes it, unless the process is dead.
func (p *Process) Write(write func() error) error {
	takesEffect, err := p.next()
	if !takesEffect {
		return err
	}
	return errors.Join(write(), err)
}

// next counts a write. It reports whether the write takes effect, and returns the error that the process sees of its own death.
func (p *Process) next() (takesEffect bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	dying := !p.dead && p.writes == p.diesAt
	p.dead = p.dead || dying
	if !p.dead {
		return true, nil
	}
	if p.onDeath != nil {
		p.onDeath()
	}
	return dying && p.loseResponse, ErrDead
}
