// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import "time"

// lately records when something last happened, by what it happened to.
type lately[K comparable] map[K]time.Time

// within reports whether it happened to a key less than a lifetime ago.
func (l lately[K]) within(key K, lifetime time.Duration, now time.Time) bool {
	at, ok := l[key]
	return ok && now.Sub(at) < lifetime
}

// expire forgets what happened longer than a lifetime ago.
func (l lately[K]) expire(lifetime time.Duration, now time.Time) {
	for key := range l {
		if !l.within(key, lifetime, now) {
			delete(l, key)
		}
	}
}
