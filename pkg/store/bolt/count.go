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

// countID identifies the remaining keys of a paged list: at one revision, at which their number never changes, or with revision 0 those of
// the last list that had the same pages, at its revision.
type countID struct {
	revision   int64
	start, end string
}

func newCountID(revision int64, sp span) countID {
	return countID{revision: revision, start: string(sp.start), end: string(sp.end)}
}

// count is a number of keys at a revision.
type count struct{ revision, keys int64 }

// maxRecount is the number of changes after a cached count from which on counting the keys is preferred to applying the changes.
const maxRecount = 1000

// countOf counts the keys of a query at a revision, given what has changed since.
func (s snapshot) countOf(q query, revision int64, past []pastKey) int64 {
	if cached, found := s.cached(revision, q.span); found {
		return cached.keys
	}
	if q.revision == 0 {
		// The next page of a list of the current state, which has another revision if the store was written meanwhile.
		if cached, found := s.cached(0, q.span); found && cached.revision >= s.compacted && cached.revision <= s.revision {
			if added, ok := s.addedSince(cached.revision, q.span); ok {
				return cached.keys + added
			}
		}
	}
	n := s.countKeys(q.span)
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

// addedSince returns how many more keys of a span exist now than at a revision, according to the log. It is not ok if there are too many
// changes, or one cannot be read.
func (s snapshot) addedSince(revision int64, sp span) (n int64, ok bool) {
	read := 0
	err := s.changes(revision+1, func(_ int64, record []byte) (bool, error) {
		if read++; read > maxRecount {
			return false, nil
		}
		key, err := eventKey(record)
		if err == nil && sp.contains(key) {
			n += addedBy(record)
		}
		return err == nil, err
	})
	return n, err == nil && read <= maxRecount
}

func (s snapshot) cached(revision int64, sp span) (count, bool) {
	if s.remaining == nil {
		return count{}, false
	}
	cached, found := s.remaining.Get(newCountID(revision, sp))
	if !found {
		return count{}, false
	}
	return cached.(count), true
}

// rememberRemaining caches the number of keys after a page, for the request that continues it.
func (s snapshot) rememberRemaining(q query, revision int64, p page) {
	if s.remaining == nil || len(p.kvs) == 0 {
		return
	}
	last := p.kvs[len(p.kvs)-1].Key
	rest := span{start: append(bytes.Clone(last), 0), end: q.end}
	remaining := count{revision: revision, keys: p.count - int64(len(p.kvs))}
	s.remaining.Add(newCountID(revision, rest), remaining)
	if q.revision == 0 {
		s.remaining.Add(newCountID(0, rest), remaining)
	}
}
