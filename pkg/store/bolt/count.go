// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"fmt"
)

// countedDepth is the number of directories of a key that are counted. Keys of API objects have five: /, /registry/, the
// group's, the resource's and the namespace's.
const countedDepth = 6

// addToCounts adds to the count of every directory of a key. A directory's name ends with a slash; the key with exactly
// that name counts as in it.
func (w *writer) addToCounts(key []byte, delta int64) error {
	depth := 0
	for i, c := range key {
		if c != '/' {
			continue
		}
		if depth++; depth > countedDepth {
			return nil
		}
		if err := w.addToCount(key[:i+1], delta); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) addToCount(directory []byte, delta int64) error {
	n := getInt64(w.counts.Get(directory)) + delta
	var err error
	if n == 0 {
		err = w.counts.Delete(directory)
	} else {
		err = w.counts.Put(directory, putInt64(n))
	}
	if err != nil {
		return fmt.Errorf("counting %q: %w", directory, err)
	}
	return nil
}

// countKeys counts the current keys of a span: in constant time if the span is a counted directory, else by iteration.
func (s snapshot) countKeys(sp span) (n int64) {
	if isCounted(sp) {
		return getInt64(s.counts.Get(sp.start))
	}
	cursor := s.keys.Cursor()
	for key, _ := cursor.Seek(sp.start); key != nil && sp.before(key); key, _ = cursor.Next() {
		n++
	}
	return n
}

func isCounted(sp span) bool {
	return sp.isPrefix() && sp.start[len(sp.start)-1] == '/' && bytes.Count(sp.start, []byte{'/'}) <= countedDepth
}

// countID identifies the remaining keys of a paged list at one revision. Its count never changes, as the past does not.
type countID struct {
	revision   int64
	start, end string
}

func newCountID(revision int64, sp span) countID {
	return countID{revision: revision, start: string(sp.start), end: string(sp.end)}
}

// countAt counts the keys of a span at a revision, given what has changed since.
func (s snapshot) countAt(revision int64, sp span, past []pastKey) int64 {
	if s.remaining != nil {
		if n, found := s.remaining.Get(newCountID(revision, sp)); found {
			return n.(int64)
		}
	}
	n := s.countKeys(sp)
	for _, p := range past {
		existed := p.was != nil
		switch {
		case existed && !p.exists:
			n++
		case !existed && p.exists:
			n--
		}
	}
	return n
}

// rememberRemaining caches the number of keys after a page, for the request that continues it.
func (s snapshot) rememberRemaining(revision int64, sp span, p page) {
	if s.remaining == nil || len(p.kvs) == 0 {
		return
	}
	last := p.kvs[len(p.kvs)-1].Key
	rest := span{start: append(bytes.Clone(last), 0), end: sp.end}
	s.remaining.Add(newCountID(revision, rest), p.count-int64(len(p.kvs)))
}
