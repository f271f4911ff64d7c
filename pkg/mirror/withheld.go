// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"sync"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
)

// withheld has the files of a declined pull request. They are not proposed again until their object changes, so events and comparisons
// treat a file with that content as if the branch had it.
type withheld struct {
	mu    sync.Mutex
	files proposal.Declined
}

// holds reports whether a file with a blob, zero for a removed one, is withheld. One with another blob is not withheld any more.
func (w *withheld) holds(path string, hash gitrepo.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	declined, ok := w.files[path]
	if ok && declined != hash {
		delete(w.files, path)
	}
	return ok && declined == hash
}

// release ends the withholding of a file.
func (w *withheld) release(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.files, path)
}

// releaseIf ends the withholding of the files for which condition is true.
func (w *withheld) releaseIf(condition func(path string, hash gitrepo.Hash) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.files, condition)
}

// set replaces the files.
func (w *withheld) set(files proposal.Declined) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = maps.Clone(files)
}

// all returns a copy of the files.
func (w *withheld) all() proposal.Declined {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.files)
}
