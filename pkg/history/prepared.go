// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"sync"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxPrepared is the number of Changes in memory of pushes in progress, about 2 KiB each. A larger push is read from the store again.
const maxPrepared = 4096

// preparedChange is a Change of a push.
type preparedChange struct {
	v1alpha1.Change
	// stored is its stored form, compressed; nil if the Change has changed since it was encoded.
	stored []byte
}

// prepared has the Changes of pushes in progress, so that they are not read from the store to be recorded. A push is missing if the
// process has been restarted since, or if there are too many. Its zero value is empty.
type prepared struct {
	mu     sync.Mutex
	pushes map[string][]preparedChange
	// count is the number of Changes of all pushes.
	count int
}

// add adds a push.
func (p *prepared) add(tip string, changes []preparedChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(tip)
	if len(changes) > maxPrepared {
		return
	}
	for other := range p.pushes {
		if p.count+len(changes) <= maxPrepared {
			break
		}
		p.remove(other)
	}
	if p.pushes == nil {
		p.pushes = map[string][]preparedChange{}
	}
	p.pushes[tip] = changes
	p.count += len(changes)
}

// take removes a push and returns its Changes.
func (p *prepared) take(tip string) (changes []preparedChange, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	changes, found = p.pushes[tip]
	p.remove(tip)
	return changes, found
}

// remove removes a push, if it exists. The caller holds the lock.
func (p *prepared) remove(tip string) {
	p.count -= len(p.pushes[tip])
	delete(p.pushes, tip)
}

// clear removes all pushes.
func (p *prepared) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pushes, p.count = nil, 0
}
