// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"math"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// sharedFor is how long what was read is kept for other plans.
	sharedFor = 30 * time.Second
	// maxSharedBytes limits what is kept, as sizeOf estimates it.
	maxSharedBytes = 32 << 20
)

// Moment is a point in the order of the reads of a StateReader. The zero value is none.
type Moment uint64

// sharedReads lets plans use what others have read. A plan uses a read only if it began after a moment that the plan names: then it
// contains all changes from before that moment. Nothing that is shared may be modified. The zero value is ready for use.
type sharedReads struct {
	mu   sync.Mutex
	last Moment
	// reads has the latest read of each key, in progress or kept. size is the size of all that are kept.
	reads *simplelru.LRU[string, *sharedRead]
	size  int64
}

// sharedRead is one read.
type sharedRead struct {
	began Moment
	// done is closed when the read has ended. value and err are set before.
	done  chan struct{}
	value any
	err   error
	// size is set if the value is kept.
	size int64
}

// now returns a moment after all reads that have begun, and before all others.
func (s *sharedReads) now() Moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next()
}

func (s *sharedReads) next() Moment {
	s.last++
	return s.last
}

// shared returns what read returns, or what it has returned to another caller with the same key, if that call began after a moment.
// Errors are returned to one caller only.
func shared[V any](
	ctx context.Context, s *sharedReads, after Moment, key string, read func(ctx context.Context) (V, error),
) (value V, err error) {
	for {
		r, isNew := s.join(key, after)
		if isNew {
			return carryOut(ctx, s, key, r, read)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return value, ctx.Err()
		}
		if r.err == nil {
			value, _ = r.value.(V) // Each key has values of one type only.
			return value, nil
		}
	}
}

// errGivenUp is the error of a read that panics.
var errGivenUp = errors.New("the read was given up")

// carryOut carries out a read, and ends it, even if it panics.
func carryOut[V any](
	ctx context.Context, s *sharedReads, key string, r *sharedRead, read func(ctx context.Context) (V, error),
) (value V, err error) {
	err = errGivenUp
	defer func() { s.end(key, r, value, err) }()
	value, err = read(ctx)
	return value, err
}

// join returns the read of a key that began after a moment. If isNew, the caller carries it out.
func (s *sharedReads) join(key string, after Moment) (r *sharedRead, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads == nil {
		// The number is positive, which is all that can be wrong. The limit is one of bytes.
		s.reads, _ = simplelru.NewLRU(math.MaxInt, func(_ string, dropped *sharedRead) { s.size -= dropped.size })
	}
	if r, known := s.reads.Get(key); known && r.began > after {
		return r, false
	}
	r = &sharedRead{began: s.next(), done: make(chan struct{})}
	s.reads.Remove(key)
	s.reads.Add(key, r)
	return r, true
}

// end ends a read. Its value is kept for a while, and errors are not.
func (s *sharedReads) end(key string, r *sharedRead, value any, err error) {
	size := sizeOf(reflect.ValueOf(value))
	s.mu.Lock()
	defer s.mu.Unlock()
	r.value, r.err = value, err
	close(r.done)
	if latest, _ := s.reads.Peek(key); latest != r {
		return
	}
	if err != nil {
		s.reads.Remove(key)
		return
	}
	r.size = size
	for s.size += size; s.size > maxSharedBytes; {
		s.reads.RemoveOldest()
	}
	began := r.began // The timer must not refer to the value, which can be dropped long before.
	time.AfterFunc(sharedFor, func() { s.drop(key, began) })
}

// drop drops the read of a key that began at a moment.
func (s *sharedReads) drop(key string, began Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if latest, known := s.reads.Peek(key); known && latest.began == began {
		s.reads.Remove(key)
	}
}

// sizeOf estimates the memory of objects.
func sizeOf(v reflect.Value) int64 {
	if !v.IsValid() {
		return 0
	}
	size := int64(v.Type().Size())
	switch v.Kind() {
	case reflect.String:
		size += int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		size += sizeOf(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			size += sizeOf(v.Index(i))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			size += sizeOf(entries.Key()) + sizeOf(entries.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			// Their own sizes are in that of the struct. Unexported fields, such as those of times, refer to what many share.
			if field := v.Field(i); v.Type().Field(i).IsExported() {
				size += sizeOf(field) - int64(field.Type().Size())
			}
		}
	}
	return size
}
