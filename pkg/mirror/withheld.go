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
	// changed is set if the files differ from what is stored.
	changed bool
}

// holds reports whether a file with a blob, zero for a removed one, is withheld. One with another blob is not withheld any more.
func (w *withheld) holds(path string, hash gitrepo.Hash) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	declined, ok := w.files[path]
	if ok && declined != hash {
		delete(w.files, path)
		w.changed = true
	}
	return ok && declined == hash
}

// release ends the withholding of a file.
func (w *withheld) release(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.files[path]; ok {
		delete(w.files, path)
		w.changed = true
	}
}

// releaseIf ends the withholding of the files for which condition is true.
func (w *withheld) releaseIf(condition func(path string, hash gitrepo.Hash) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.files)
	maps.DeleteFunc(w.files, condition)
	w.changed = w.changed || len(w.files) < before
}

// set replaces the files by those that are stored.
func (w *withheld) set(files proposal.Declined) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files, w.changed = maps.Clone(files), false
}

// add withholds more files.
func (w *withheld) add(files proposal.Declined) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == nil {
		w.files = proposal.Declined{}
	}
	maps.Copy(w.files, files)
	w.changed = true
}

// toStore returns a copy of the files if they differ from what is stored.
func (w *withheld) toStore() (proposal.Declined, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed := w.changed
	w.changed = false
	return maps.Clone(w.files), changed
}

// storeAgain records that the files could not be stored.
func (w *withheld) storeAgain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
}

// isStored reports whether the files are as they were stored.
func (w *withheld) isStored() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.changed
}
