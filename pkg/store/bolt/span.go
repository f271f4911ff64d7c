// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import "bytes"

// span is a half-open range of keys: from start up to, but excluding, end. A nil end means no bound.
type span struct {
	start, end []byte
}

// newSpan converts etcd's range: no rangeEnd is the key alone, the rangeEnd "\x00" is everything from key on.
func newSpan(key, rangeEnd []byte) span {
	switch {
	case len(rangeEnd) == 0:
		return span{start: key, end: append(bytes.Clone(key), 0)}
	case len(rangeEnd) == 1 && rangeEnd[0] == 0:
		return span{start: key}
	default:
		return span{start: key, end: rangeEnd}
	}
}

func (s span) contains(key []byte) bool {
	return bytes.Compare(key, s.start) >= 0 && s.before(key)
}

// before reports whether key is before the span's end.
func (s span) before(key []byte) bool {
	return s.end == nil || bytes.Compare(key, s.end) < 0
}

// isPrefix reports whether the span is exactly the keys that begin with its start.
func (s span) isPrefix() bool {
	last := len(s.start) - 1
	return last >= 0 && s.start[last] < 0xff && len(s.end) == len(s.start) &&
		bytes.Equal(s.start[:last], s.end[:last]) && s.end[last] == s.start[last]+1
}
