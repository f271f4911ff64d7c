// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/ledger"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/notification/observe"
)

// queue collects the notifications of one sink. What is collected is in memory until the worker stores it; take returns what to store.
type queue struct {
	uid  types.UID
	now  func() time.Time
	wake chan struct{}

	mu        sync.Mutex
	selection *selection
	// receiver identifies the receiver, for threads.
	receiver string
	ledger.Contents
	// current are the lasting findings as they are now, by key, if it is known.
	current map[string]*observe.Finding
	// objects are the keys of findings by the object in which they were found.
	objects map[string]sets.Set[string]
	// changed are the parts of the contents that are not stored yet.
	changed changed
	// cursorStored is when the cursor was last stored.
	cursorStored time.Time
}

// newQueue returns a queue with what the ledger of a sink contains.
func newQueue(uid types.UID, contents *ledger.Contents, now func() time.Time) *queue {
	q := &queue{
		uid: uid, now: now, wake: make(chan struct{}, 1), Contents: *contents, current: map[string]*observe.Finding{},
		objects: map[string]sets.Set[string]{}, changed: newChanged(),
	}
	for key, found := range q.Found {
		q.index(key, found.Object)
	}
	return q
}

// index notes in which object a finding is found.
func (q *queue) index(key, object string) {
	if q.objects[object] == nil {
		q.objects[object] = sets.New[string]()
	}
	q.objects[object].Insert(key)
}

// signal wakes the worker.
func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// configure sets what is collected and sent from now on. Of what happens once, a newly selected event is notified from now on; of what lasts, also
// if it has begun before. When a suspension ends, that applies to all events. What is pending and no longer selected is not sent.
func (q *queue) configure(s *selection) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.State.Scope != s.scope {
		q.Pending.Keep(s.stillSelects)
		q.State.Scope, q.changed.pending = s.scope, true
	}
	for key, f := range q.Found {
		if !s.events.Has(f.Event) {
			q.forget(key)
		}
	}
	isNew, resumed := q.State.Since == nil, q.State.Suspended && !s.spec.Suspend
	since := map[v1alpha1.NotificationEvent]time.Time{}
	for event := range s.events {
		at, known := q.State.Since[event]
		switch {
		case isNew:
			at = s.created
		case !known || resumed:
			at = q.now()
		}
		since[event] = at
	}
	if resumed || !s.followsChanges() {
		q.State.Cursor, q.State.Reached, q.State.Partial = "", "", nil
	}
	q.State.Since, q.State.Suspended = since, s.spec.Suspend
	q.selection, q.receiver = s, receiverOf(&s.spec)
	q.changed.state = true
	q.signal()
}

// receiverOf identifies the receiver of a sink that has threads.
func receiverOf(spec *v1alpha1.NotificationSinkSpec) string {
	text := "email"
	if spec.Slack != nil {
		text = fmt.Sprintf("slack %q %q %q", spec.Slack.APIURL, spec.Slack.SecretRef.Name, spec.Slack.Channel)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// observe collects what is found in an object about a subject with labels.
func (q *queue) observe(object string, of labels.Set, found observe.Findings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil || q.selection.spec.Suspend {
		return
	}
	if found.Deleted {
		for _, key := range sets.List(q.objects[object]) {
			q.forget(key)
		}
		return
	}
	present, notified := sets.New[string](), false
	for i := range found.Found {
		finding := &found.Found[i]
		present.Insert(finding.Notification.DedupeKey)
		if q.selection.selects(finding, of) && q.collect(object, finding) && !finding.Lasting {
			notified = true
		}
	}
	for _, key := range sets.List(q.objects[object]) {
		switch f := q.Found[key]; {
		case !f.Lasting || present.Has(key):
		case hasPrefix(key, found.Unknown):
			delete(q.current, key) // There are no reminders of what may have ended.
		default:
			q.end(key, found.State, notified)
		}
	}
}

// collect adds a finding of which the sink was not notified yet, or that has become more severe. It reports whether it did.
func (q *queue) collect(object string, finding *observe.Finding) bool {
	n := finding.Notification
	known := q.Found[n.DedupeKey]
	if finding.Lasting {
		if q.current[n.DedupeKey] == nil {
			q.signal() // A reminder may be due.
		}
		q.current[n.DedupeKey] = finding
	}
	if known != nil && (!known.Lasting || message.Rank(n.Severity) <= message.Rank(known.Severity)) {
		return false
	}
	if known == nil {
		known = &ledger.Found{Key: n.DedupeKey, Object: object, Lasting: finding.Lasting, Event: n.Event, Subject: n.Subject}
		q.Found[n.DedupeKey] = known
		q.index(n.DedupeKey, object)
	}
	known.Severity = n.Severity
	q.changed.found.Insert(n.DedupeKey)
	q.changed.ended.Delete(n.DedupeKey)
	if !finding.Lasting && n.Time.Before(q.State.Since[n.Event].Truncate(time.Second)) {
		return false // It happened before the sink was to be notified of it.
	}
	q.add(ledger.Entry{Notification: n, SourceNamespace: finding.SourceNamespace})
	return true
}

// end ends a lasting finding. One of which the sink was not notified yet is no longer sent. The end of another one is notified, unless a
// notification of the same object says so, or it is the end of a prompt: a sync or a dismissal, which are events.
func (q *queue) end(key, state string, said bool) {
	f := q.Found[key]
	q.forget(key)
	if q.Pending.Remove(key) {
		q.changed.pending = true
	}
	wasNotified := !f.First.IsZero() || q.isSending(key)
	if !wasNotified || said || f.Event == v1alpha1.NotifyPrompted || !q.selection.namespaces(f.Subject.Namespace) {
		return
	}
	q.add(ledger.Entry{Notification: message.Notification{
		Event: f.Event, Recovered: true, Time: q.now(), Severity: v1alpha1.SeverityInfo, Subject: f.Subject, State: state,
		Headline: observe.Headline(f.Subject, observe.EndOf(f.Event, state)), DedupeKey: key,
	}})
}

// isSending reports whether a finding is in the message that is being sent.
func (q *queue) isSending(key string) bool {
	return q.Sending != nil && slices.ContainsFunc(q.Sending.Listed, func(e ledger.Entry) bool { return e.Notification.DedupeKey == key })
}

// forget removes a finding.
func (q *queue) forget(key string) {
	if f := q.Found[key]; f != nil {
		q.objects[f.Object].Delete(key)
		if q.objects[f.Object].Len() == 0 {
			delete(q.objects, f.Object)
		}
	}
	delete(q.Found, key)
	delete(q.current, key)
	q.changed.found.Delete(key)
	q.changed.ended.Insert(key)
	q.signal()
}

// add adds an entry to the notifications to send.
func (q *queue) add(entry ledger.Entry) {
	q.State.Sequence++
	n := &entry.Notification
	n.Sequence = q.State.Sequence
	n.ID = idOf(q.uid, n.DedupeKey, 0)
	if q.isRepeatable(n) {
		n.ID = idOf(q.uid, n.DedupeKey, q.State.Sequence)
	}
	q.Pending.Add(entry, q.now())
	q.changed.state, q.changed.pending = true, true
	q.signal()
}

// isRepeatable reports whether there may be several notifications about a finding: it lasts, and ends.
func (q *queue) isRepeatable(n *message.Notification) bool {
	f := q.Found[n.DedupeKey]
	return n.Recovered || f != nil && f.Lasting
}

// idOf returns an ID that is unique among all sinks.
func idOf(uid types.UID, kind string, number int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", uid, kind, number))
	return hex.EncodeToString(sum[:16])
}

func hasPrefix(key string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// knowsLasting reports whether the sink has a lasting finding in an object.
func (q *queue) knowsLasting(object string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.objects[object] {
		if q.Found[key].Lasting {
			return true
		}
	}
	return false
}

// awaits reports whether the sink is notified of an event of a time, and was not yet.
func (q *queue) awaits(event v1alpha1.NotificationEvent, key string, at *metav1.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	since, selected := q.State.Since[event]
	return selected && q.Found[key] == nil && (at.IsZero() || !at.Time.Before(since.Truncate(time.Second)))
}

// knownObjects returns the objects in which the sink has a finding.
func (q *queue) knownObjects() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.objects))
}
