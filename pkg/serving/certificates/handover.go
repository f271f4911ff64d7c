// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import "time"

const (
	// interval is how often everything is looked at while something is under way, and whether there is reason to otherwise.
	interval = 5 * time.Second
	// settle is how long after a change of a bundle every API server has surely taken it in. One does within a second.
	settle = 10 * time.Second
	// patience is how long a certificate waits when nobody can tell whether it is trusted.
	patience = 5 * time.Minute
)

// handover is the way from one certificate to the next.
type handover struct {
	name  string
	next  *identity
	since time.Time
}

// to names what is next, from now on if it is something else than before.
func (h *handover) to(next *identity, now time.Time) {
	if h.next == nil || next == nil || !h.next.sameTrust(next) {
		h.since = now
	}
	h.next = next
}

// safe tells whether no client is lost that trusts what is shown now.
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

// overdue tells whether to go on without knowing who trusts whom.
func (h *handover) overdue(shown *identity, now time.Time) bool {
	return now.Sub(h.since) >= patience || shown.leaf().NotAfter.Before(now.Add(interval))
}

// loses tells whether a client that trusts what is shown would not trust what is next.
func (h *handover) loses(shown *identity, client trust, now time.Time) bool {
	return shown.verify(client.authorities, h.name, now.Add(interval)) == nil &&
		h.next.verify(client.longerThan(settle, now), h.name, now) != nil
}
