// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

// MaxBytes bounds the listed entries of a digest, encoded: those of pending and of sending fit into one write of the store, of 1 MiB.
const MaxBytes = 448 << 10

// Entry is a notification with what is needed to send it.
type Entry struct {
	Notification message.Notification `json:"notification"`
	// SourceNamespace is where its authors and commits come from, if that is not the namespace of the subject.
	SourceNamespace string `json:"sourceNamespace,omitempty"`
	// Change is set for a Change.
	Change *ChangeReference `json:"change,omitempty"`
	// Bytes is the size of the entry, encoded.
	Bytes int `json:"bytes"`
}

// ChangeReference names a Change and the type of its object.
type ChangeReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
}

// Digest are notifications that are sent together. All are counted, and the first and the most severe ones listed.
type Digest struct {
	// First is when the first one was added.
	First  time.Time       `json:"first,omitzero"`
	Listed []Entry         `json:"listed,omitempty"`
	Counts []message.Count `json:"counts,omitempty"`
}

// Sending is the message that is being sent.
type Sending struct {
	// ID of the message.
	ID string `json:"id"`
	// Time is when it was made.
	Time time.Time `json:"time"`
	// Scope is that of the State when it was made.
	Scope string `json:"scope"`
	Digest
}

// Total returns the number of notifications.
func (d *Digest) Total() int { return (&message.Message{Counts: d.Counts}).Total() }

// IsEmpty reports whether there are none.
func (d *Digest) IsEmpty() bool { return len(d.Counts) == 0 }

// Add adds a notification. One about the same finding takes the place of the earlier one. A digest that is full replaces the last one of a lower
// severity, which is then only counted.
func (d *Digest) Add(entry Entry, now time.Time) {
	if d.IsEmpty() {
		d.First = now
	}
	entry.Bytes = sizeOf(&entry)
	for i := range d.Listed {
		if earlier := &d.Listed[i]; earlier.Notification.DedupeKey == entry.Notification.DedupeKey {
			d.count(&earlier.Notification, -1)
			d.count(&entry.Notification, 1)
			*earlier = entry
			return
		}
	}
	d.count(&entry.Notification, 1)
	if len(d.Listed) < message.MaxNotifications && d.bytes()+entry.Bytes <= MaxBytes {
		d.Listed = append(d.Listed, entry)
		return
	}
	d.replace(entry)
}

// replace replaces the last entry of the lowest severity, if that is lower than the severity of entry.
func (d *Digest) replace(entry Entry) {
	rank := func(e Entry) int { return message.Rank(e.Notification.Severity) }
	lowest := -1
	for i, e := range slices.Backward(d.Listed) {
		if rank(e) < rank(entry) && (lowest < 0 || rank(e) < rank(d.Listed[lowest])) {
			lowest = i
		}
	}
	if lowest >= 0 && d.bytes()-d.Listed[lowest].Bytes+entry.Bytes <= MaxBytes {
		d.Listed = append(slices.Delete(d.Listed, lowest, lowest+1), entry)
	}
}

// AddCount counts notifications that are not listed.
func (d *Digest) AddCount(n *message.Notification, number int, now time.Time) {
	if d.IsEmpty() {
		d.First = now
	}
	d.count(n, number)
}

// Remove removes the listed notification about a finding. It reports whether there was one.
func (d *Digest) Remove(key string) bool {
	at := slices.IndexFunc(d.Listed, func(e Entry) bool { return e.Notification.DedupeKey == key })
	if at < 0 {
		return false
	}
	d.count(&d.Listed[at].Notification, -1)
	d.Listed = slices.Delete(d.Listed, at, at+1)
	return true
}

// Keep removes the listed notifications that keep does not accept, and those that are only counted, of which nothing else is known.
func (d *Digest) Keep(keep func(entry *Entry) bool) {
	d.Listed = slices.DeleteFunc(d.Listed, func(e Entry) bool { return !keep(&e) })
	d.Counts = nil
	for i := range d.Listed {
		d.count(&d.Listed[i].Notification, 1)
	}
}

// count adds to the number of notifications of a kind.
func (d *Digest) count(n *message.Notification, number int) {
	at := slices.IndexFunc(d.Counts, func(c message.Count) bool { return c.Event == n.Event && c.Recovered == n.Recovered })
	if at < 0 {
		at = len(d.Counts)
		d.Counts = append(d.Counts, message.Count{Event: n.Event, Recovered: n.Recovered})
	}
	d.Counts[at].Count += number
	if d.Counts[at].Count <= 0 {
		d.Counts = slices.Delete(d.Counts, at, at+1)
	}
	slices.SortFunc(d.Counts, func(a, b message.Count) int {
		return cmp.Or(cmp.Compare(rankOf(a), rankOf(b)), cmp.Compare(a.Event, b.Event))
	})
}

// rankOf orders events as the API lists them, and recoveries after them.
func rankOf(count message.Count) int {
	rank := slices.Index(v1alpha1.NotificationEvents(), count.Event)
	if count.Recovered {
		rank += len(v1alpha1.NotificationEvents())
	}
	return rank
}

func (d *Digest) bytes() int {
	total := 0
	for i := range d.Listed {
		total += d.Listed[i].Bytes
	}
	return total
}

// Clone returns a copy that shares no lists that change.
func (d *Digest) Clone() Digest {
	return Digest{First: d.First, Listed: slices.Clone(d.Listed), Counts: slices.Clone(d.Counts)}
}

// sizeOf returns the size of an entry, encoded. One that cannot be encoded is too large to be listed.
func sizeOf(entry *Entry) int {
	encoded, err := json.Marshal(entry)
	if err != nil {
		return MaxBytes + 1
	}
	return len(encoded)
}
