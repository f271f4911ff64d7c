// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func entry(key string, event v1alpha1.NotificationEvent, severity v1alpha1.NotificationSeverity) ledger.Entry {
	return ledger.Entry{Notification: message.Notification{Event: event, Severity: severity, DedupeKey: key}}
}

func change(key string) ledger.Entry { return entry(key, v1alpha1.NotifyChange, v1alpha1.SeverityInfo) }

// described returns the keys of the listed notifications and all counts.
func described(d *ledger.Digest) string {
	var parts []string
	for _, e := range d.Listed {
		parts = append(parts, e.Notification.DedupeKey)
	}
	for _, c := range d.Counts {
		parts = append(parts, fmt.Sprintf("%s=%d", c.Event, c.Count))
	}
	return strings.Join(parts, " ")
}

func TestAdd(t *testing.T) {
	failure := entry("f", v1alpha1.NotifyFailed, v1alpha1.SeverityError)
	for name, tt := range map[string]struct {
		add  func(d *ledger.Digest)
		want string
	}{
		"events in their order": {
			add:  func(d *ledger.Digest) { d.Add(change("c"), noon); d.Add(failure, noon) },
			want: "c f Failed=1 Change=1",
		},
		"the same again": {
			add:  func(d *ledger.Digest) { d.Add(failure, noon); d.Add(change("c"), noon); d.Add(failure, noon) },
			want: "f c Failed=1 Change=1",
		},
		"the same with another event": {
			add: func(d *ledger.Digest) {
				d.Add(failure, noon)
				d.Add(entry("f", v1alpha1.NotifyConflicted, v1alpha1.SeverityWarning), noon)
			},
			want: "f Conflicted=1",
		},
		"removed": {
			add:  func(d *ledger.Digest) { d.Add(failure, noon); d.Add(change("c"), noon); d.Remove("f") },
			want: "c Change=1",
		},
		"a count": {
			add: func(d *ledger.Digest) {
				d.Add(change("c"), noon)
				d.AddCount(&message.Notification{Event: v1alpha1.NotifyChange}, 4, noon)
			},
			want: "c Change=5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &ledger.Digest{}
			tt.add(d)
			if got := described(d); got != tt.want || !d.First.Equal(noon) {
				t.Errorf("got %q since %v, want %q", got, d.First, tt.want)
			}
		})
	}
}

// TestAddToFull checks that a full digest counts all, and lists what is more severe in the place of the last that is less.
func TestAddToFull(t *testing.T) {
	d := &ledger.Digest{}
	for i := range message.MaxNotifications + 5 {
		d.Add(change(fmt.Sprintf("c%d", i)), noon)
	}
	d.Add(entry("w", v1alpha1.NotifyBypass, v1alpha1.SeverityWarning), noon.Add(time.Minute))
	d.Add(entry("e", v1alpha1.NotifyFailed, v1alpha1.SeverityError), noon)
	last := d.Listed[len(d.Listed)-2:]
	if last[0].Notification.DedupeKey != "w" || last[1].Notification.DedupeKey != "e" || len(d.Listed) != message.MaxNotifications {
		t.Errorf("%d listed, the last are %v", len(d.Listed), last)
	}
	if d.Total() != message.MaxNotifications+7 || !d.First.Equal(noon) {
		t.Errorf("total = %d since %v", d.Total(), d.First)
	}
}

// TestBytesAreBounded checks that large notifications are counted once the digest has its size.
func TestBytesAreBounded(t *testing.T) {
	d := &ledger.Digest{}
	for i := range 50 {
		large := change(fmt.Sprintf("c%d", i))
		large.Notification.Error = strings.Repeat("x", 20<<10)
		d.Add(large, noon)
	}
	size := 0
	for _, e := range d.Listed {
		size += e.Bytes
	}
	if size > ledger.MaxBytes || size < ledger.MaxBytes-(30<<10) || d.Total() != 50 {
		t.Errorf("%d bytes in %d entries of %d", size, len(d.Listed), d.Total())
	}
}
