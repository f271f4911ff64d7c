// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"

	"k8s.io/apiserver/pkg/server/healthz"
)

const (
	// spaceBytes is the space beyond the size of a failed write at which writes are expected to succeed again: bbolt's
	// file grows by that much, and the write copies the pages above those that it changes.
	spaceBytes = 16 << 20

	// leastBytes is the minimum free space at which a success after such a failure counts. With less, it used pages that
	// are free within the file, and the next write may fail again.
	leastBytes = 1 << 20
)

// spaceWatch records whether a write failed for lack of space.
type spaceWatch struct {
	// lacking is the size of the last writes that failed for lack of space, in bytes. It is 0 while there is space.
	lacking atomic.Int64
	// succeeded is set once writes of that size have succeeded since.
	succeeded atomic.Bool
}

// ended records the result of writes of a size. A success of smaller writes than those that failed is ignored.
func (s *spaceWatch) ended(size int, err error) {
	switch lacking := s.lacking.Load(); {
	case errors.Is(err, ErrDiskFull):
		s.succeeded.Store(false)
		s.lacking.Store(max(int64(size), 1))
	case err == nil && lacking > 0 && int64(size) >= lacking:
		s.succeeded.Store(true)
	}
}

// check returns [ErrDiskFull] after a write has failed for lack of space, until one of the same size has succeeded and the
// volume is no longer full, or until there is clearly enough space for it. most is the maximum size of the file.
func (s *spaceWatch) check(r *reader, most int64) error {
	lacking := s.lacking.Load()
	if lacking == 0 {
		return nil
	}
	folder := filepath.Dir(r.path())
	free, known := freeIn(folder)
	if !known && !s.succeeded.Load() {
		return fmt.Errorf("%w: a write of %d bytes failed", ErrDiskFull, lacking)
	}
	total, used, err := r.size()
	if err != nil {
		return fmt.Errorf("measuring the store: %w", err)
	}
	need := 2*lacking + spaceBytes
	switch {
	case s.succeeded.Load() && (!known || free >= leastBytes):
	case total+need > most && total-used < need:
		return fmt.Errorf("%w: a write of %d bytes failed, and of the %d bytes that %s may have only %d are left",
			ErrDiskFull, lacking, most, r.path(), max(0, most-total)+total-used)
	case free < need:
		return fmt.Errorf("%w: a write of %d bytes failed, and %d bytes are free in %s, at least %d are needed",
			ErrDiskFull, lacking, free, folder, need)
	}
	s.lacking.CompareAndSwap(lacking, 0)
	return nil
}

// CheckSpace returns [ErrDiskFull] after a write has failed for lack of space, until one of the same size has succeeded
// and the volume is no longer full, or until there is clearly enough space for it.
func (e *Engine) CheckSpace() error {
	return e.space.check(e.reader, int64(e.options.MaxFileBytes))
}

// freeIn returns the free bytes of a folder's volume, if known.
func freeIn(folder string) (free int64, known bool) {
	free, _, err := volumeOf(folder)
	return free, err == nil
}

// SpaceCheckName is the name of the check that fails while there is no space for writes.
const SpaceCheckName = "store-space"

// SpaceCheck returns a check that fails while one of the engines has no space for writes. Reads are still served, so it
// must not be a liveness check.
func SpaceCheck(engines ...*Engine) healthz.HealthChecker {
	return healthz.NamedCheck(SpaceCheckName, func(*http.Request) error {
		for _, e := range engines {
			if err := e.CheckSpace(); err != nil {
				return err
			}
		}
		return nil
	})
}
