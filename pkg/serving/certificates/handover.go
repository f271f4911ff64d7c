// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "time"

const (
	// interval is the time between syncs while a change is in progress, and between checks for changes otherwise.
	interval = 5 * time.Second
	// settle is the time after which every API server has observed a change of a bundle. Usually it takes less than a
	// second.
	settle = 10 * time.Second
	// overdueAfter is how long a certificate waits if it is unknown whether clients trust it.
	overdueAfter = 5 * time.Minute
)

// handover is the transition from one certificate to the next.
type handover struct {
	name  string
	next  *identity
	since time.Time
}

// to sets the next certificate. The transition starts anew if it differs from the previous one.
func (h *handover) to(next *identity, now time.Time) {
	if h.next == nil || next == nil || !h.next.sameTrust(next) {
		h.since = now
	}
	h.next = next
}

// safe reports whether all clients that trust the current certificate trust the next one.
func (h *handover) safe(shown *identity, trusts []trust, now time.Time) bool {
	if shown == nil || shown.sameTrust(h.next) {
		return true
	}
	for _, each := range trusts {
		if each.unknown && !h.overdue(shown, now) || !each.unknown && h.loses(shown, each, now) {
			return false
		}
	}
	return true
}

// overdue reports whether to continue without knowing what clients trust.
func (h *handover) overdue(shown *identity, now time.Time) bool {
	return now.Sub(h.since) >= overdueAfter || shown.leaf().NotAfter.Before(now.Add(interval))
}

// loses reports whether a client that trusts the current certificate would not trust the next one.
func (h *handover) loses(shown *identity, client trust, now time.Time) bool {
	return shown.verify(client.authorities, h.name, now.Add(interval)) == nil &&
		h.next.verify(client.longerThan(settle, now), h.name, now) != nil
}
