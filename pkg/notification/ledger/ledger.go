// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the name of the table.
const TableName = "notifications"

// The parts of keys after the uid.
const (
	stateKey, pendingKey, sendingKey = "state", "pending", "sending"
	foundPrefix, threadPrefix        = "found/", "thread/"
)

// State is the progress of a sink.
type State struct {
	// Sequence is that of the last notification, and Sent the number of the last message.
	Sequence int64 `json:"sequence,omitempty"`
	Sent     int64 `json:"sent,omitempty"`
	// Messages, Notifications and Rejected count what was delivered, and the messages that were rejected.
	Messages      int64 `json:"messages,omitempty"`
	Notifications int64 `json:"notifications,omitempty"`
	Rejected      int64 `json:"rejected,omitempty"`
	// Delivered is when the last message was delivered, and Title its title.
	Delivered time.Time `json:"delivered,omitzero"`
	Title     string    `json:"title,omitempty"`
	// Cursor is the resourceVersion up to which all Changes have been collected. Empty means that none have to be.
	Cursor string `json:"cursor,omitempty"`
	// Reached is a later resourceVersion that Changes have of which some have been collected: those with the UIDs in Partial.
	Reached string      `json:"reached,omitempty"`
	Partial []types.UID `json:"partial,omitempty"`
	// Since is from when on each selected event is notified that is not lasting.
	Since map[v1alpha1.NotificationEvent]time.Time `json:"since,omitempty"`
	// Scope identifies what the sink sent, to whom, and on whose behalf, when the pending notifications were collected.
	Scope string `json:"scope,omitempty"`
	// Suspended is set while spec.suspend is.
	Suspended bool `json:"suspended,omitempty"`
}

// Found is a finding of which a sink has been notified, or will be.
type Found struct {
	// Key is the DedupeKey of the notification.
	Key string `json:"key"`
	// Object identifies the object in which it is found: kind, namespace and name.
	Object string `json:"object"`
	// Lasting means that it is open until it is no longer found.
	Lasting bool                       `json:"lasting,omitempty"`
	Event   v1alpha1.NotificationEvent `json:"event"`
	Subject message.Subject            `json:"subject"`
	// Severity is that of the last notification.
	Severity v1alpha1.NotificationSeverity `json:"severity,omitempty"`
	// First is when the first notification was sent. Zero means that none was sent yet.
	First time.Time `json:"first,omitzero"`
	// Reminders is the number of reminders so far.
	Reminders int `json:"reminders,omitempty"`
}

// Thread is the first message about a subject.
type Thread struct {
	// Key identifies the subject.
	Key string `json:"key"`
	// Reference is what the receiver calls the message.
	Reference string `json:"reference"`
	// Receiver identifies the receiver, such as a channel: another one does not have the message.
	Receiver string `json:"receiver"`
	// Used is when the thread was last used.
	Used time.Time `json:"used"`
}

// Contents are all rows of a sink.
type Contents struct {
	State   State
	Pending Digest
	// Sending is nil if no message is being sent.
	Sending *Sending
	Found   map[string]*Found
	Threads map[string]*Thread
}

// Ledger stores the rows of one sink.
type Ledger struct {
	rows *table.Table
	uid  types.UID
}

// Open returns the ledger of a sink and its contents.
func Open(ctx context.Context, rows *table.Table, uid types.UID) (ledger *Ledger, contents *Contents, err error) {
	ledger = &Ledger{rows: rows, uid: uid}
	contents = &Contents{Found: map[string]*Found{}, Threads: map[string]*Thread{}}
	for row, err := range rows.Scan(ctx, ledger.prefix()) {
		if err != nil {
			return nil, nil, fmt.Errorf("read the ledger of a sink: %w", err)
		}
		if err := contents.read(strings.TrimPrefix(row.Key, ledger.prefix()), row.Value); err != nil {
			return nil, nil, fmt.Errorf("decode row %s: %w", rows.FullKey(row.Key), err)
		}
	}
	return ledger, contents, nil
}

func (l *Ledger) prefix() string { return string(l.uid) + "/" }

// read decodes a row.
func (c *Contents) read(key string, value []byte) error {
	switch {
	case key == stateKey:
		return json.Unmarshal(value, &c.State) //nolint:wrapcheck // the caller does
	case key == pendingKey:
		return json.Unmarshal(value, &c.Pending) //nolint:wrapcheck // the caller does
	case key == sendingKey:
		return json.Unmarshal(value, &c.Sending) //nolint:wrapcheck // the caller does
	case strings.HasPrefix(key, foundPrefix):
		found := &Found{}
		if err := json.Unmarshal(value, found); err != nil {
			return err //nolint:wrapcheck // the caller does
		}
		c.Found[found.Key] = found
	case strings.HasPrefix(key, threadPrefix):
		thread := &Thread{}
		if err := json.Unmarshal(value, thread); err != nil {
			return err //nolint:wrapcheck // the caller does
		}
		c.Threads[thread.Key] = thread
	}
	return nil
}

// Writes are changes of the rows of a sink. Nil means no change.
type Writes struct {
	State   *State
	Pending *Digest
	Sending *Sending
	// Sent deletes the message that is being sent.
	Sent    bool
	Found   []Found
	Threads []Thread
	// Ended are the keys of findings that are no longer found, and Expired those of threads.
	Ended, Expired []string
}

// IsEmpty reports whether there is nothing to write.
func (w *Writes) IsEmpty() bool {
	return w.State == nil && w.Pending == nil && w.Sending == nil && !w.Sent && len(w.Found)+len(w.Threads)+len(w.Ended)+len(w.Expired) == 0
}

// Write makes changes durable. State, pending, sending and the first findings are written at once. It can be repeated after an error.
func (l *Ledger) Write(ctx context.Context, w *Writes) error {
	rows, err := l.encode(w)
	if err != nil {
		return err
	}
	if err := l.rows.Put(ctx, rows...); err != nil {
		return fmt.Errorf("write the ledger of a sink: %w", err)
	}
	if err := l.rows.Delete(ctx, l.deleted(w)...); err != nil {
		return fmt.Errorf("delete from the ledger of a sink: %w", err)
	}
	return nil
}

// encode returns the rows of a write. A message that was sent becomes null, so that it is written together with the counters.
func (l *Ledger) encode(w *Writes) ([]table.Row, error) {
	var rows []table.Row
	var failure error
	add := func(key string, value any) {
		encoded, err := json.Marshal(value)
		if err != nil {
			failure = fmt.Errorf("encode row %s: %w", key, err)
		}
		rows = append(rows, table.Row{Key: l.prefix() + key, Value: encoded})
	}
	if w.State != nil {
		add(stateKey, w.State)
	}
	if w.Pending != nil {
		add(pendingKey, w.Pending)
	}
	if w.Sending != nil || w.Sent {
		add(sendingKey, w.Sending)
	}
	for i := range w.Found {
		add(foundPrefix+hashOf(w.Found[i].Key), &w.Found[i])
	}
	for i := range w.Threads {
		add(threadPrefix+hashOf(w.Threads[i].Key), &w.Threads[i])
	}
	return rows, failure
}

// deleted returns the keys of the rows that a write deletes.
func (l *Ledger) deleted(w *Writes) []string {
	var keys []string
	for _, key := range w.Ended {
		keys = append(keys, l.prefix()+foundPrefix+hashOf(key))
	}
	for _, key := range w.Expired {
		keys = append(keys, l.prefix()+threadPrefix+hashOf(key))
	}
	return keys
}

// hashOf returns the part of a row's key that identifies a finding or thread, which can contain any characters.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// Drop deletes all rows of a sink.
func Drop(ctx context.Context, rows *table.Table, uid types.UID) error {
	// A slash is followed by 0 in ASCII.
	if err := rows.DeleteRange(ctx, string(uid)+"/", string(uid)+"0"); err != nil {
		return fmt.Errorf("delete the ledger of a sink: %w", err)
	}
	return nil
}

// Sweep deletes the rows of sinks that do not exist.
func Sweep(ctx context.Context, rows *table.Table, exists func(types.UID) bool) error {
	var dropped types.UID
	for key, err := range rows.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("find the ledgers of deleted sinks: %w", err)
		}
		uid, _, _ := strings.Cut(key, "/")
		if of := types.UID(uid); of != dropped && !exists(of) {
			if err := Drop(ctx, rows, of); err != nil {
				return err
			}
			dropped = of
		}
	}
	return nil
}
