// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
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

// changed are the parts of a sink's contents that are not stored yet.
type changed struct {
	state, pending, sending        bool
	found, ended, threads, expired sets.Set[string]
}

func newChanged() changed {
	return changed{found: sets.New[string](), ended: sets.New[string](), threads: sets.New[string](), expired: sets.New[string]()}
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

// changePosition returns the resourceVersion from which the sink needs Changes; ok is false if it needs none. It is 0 for a sink that needs
// them from now on.
func (q *queue) changePosition() (position uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.selection == nil || q.selection.spec.Suspend || !q.selection.followsChanges() {
		return 0, false
	}
	return parseVersion(q.State.Cursor), true
}

// cursorInterval is how often the position among Changes is stored while none is collected. After a start, at most those of that time are
// read again.
const cursorInterval = time.Minute

// reach notes that a watch of Changes has come to a resourceVersion. Changes that were stored together have the same one: all of an earlier one
// have been collected, but maybe not all of this one.
func (q *queue) reach(version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	reached := parseVersion(q.State.Reached)
	if version <= max(reached, parseVersion(q.State.Cursor)) {
		return
	}
	if reached > 0 {
		q.State.Cursor = q.State.Reached
	}
	q.State.Reached, q.State.Partial = strconv.FormatUint(version, 10), nil
	q.moved()
}

// advance notes that all Changes up to a resourceVersion were collected.
func (q *queue) advance(version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.advanceLocked(version)
}

func (q *queue) advanceLocked(version uint64) {
	if version <= parseVersion(q.State.Cursor) {
		return
	}
	q.State.Cursor = strconv.FormatUint(version, 10)
	if version >= parseVersion(q.State.Reached) {
		q.State.Reached, q.State.Partial = "", nil
	}
	q.moved()
}

// moved stores the position now and then. It is also stored together with the Changes that are pending.
func (q *queue) moved() {
	if now := q.now(); now.Sub(q.cursorStored) >= cursorInterval {
		q.cursorStored, q.changed.state = now, true
		q.signal()
	}
}

// hasCollected reports whether a Change was collected, or is older than those that are.
func (q *queue) hasCollected(change *v1alpha1.Change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hasCollectedLocked(parseVersion(change.ResourceVersion), change.UID)
}

func (q *queue) hasCollectedLocked(version uint64, uid types.UID) bool {
	return version <= parseVersion(q.State.Cursor) ||
		version == parseVersion(q.State.Reached) && slices.Contains(q.State.Partial, uid)
}

// selectsChange reports whether the sink is notified of a Change.
func (q *queue) selectsChange(change *v1alpha1.Change, n *message.Notification, destinations []labels.Set) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.selection != nil && !q.selection.spec.Suspend && q.selection.selectsChange(change, n, destinations)
}

// collectedChange is a Change of which a sink is notified.
type collectedChange struct {
	uid     types.UID
	version uint64
	entry   ledger.Entry
}

// newCollectedChange returns a Change with its notification.
func newCollectedChange(change *v1alpha1.Change, n message.Notification) collectedChange {
	of := typeOf(&change.Spec.Object)
	return collectedChange{
		uid: change.UID, version: parseVersion(change.ResourceVersion),
		entry: ledger.Entry{Notification: n, Change: &ledger.ChangeReference{
			Namespace: change.Namespace, Name: change.Name, Group: of.Group, Resource: of.Resource,
		}},
	}
}

// addChange collects a Change of a watch. That it was collected is stored together with it.
func (q *queue) addChange(c collectedChange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasCollectedLocked(c.version, c.uid) {
		return
	}
	q.add(c.entry)
	if c.version == parseVersion(q.State.Reached) {
		q.State.Partial = append(q.State.Partial, c.uid)
	}
}

// addListed collects the Changes of a list with a resourceVersion, the earliest first. That all were collected is stored together with them.
func (q *queue) addListed(changes *ledger.Digest, version uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortStableFunc(changes.Listed, func(a, b ledger.Entry) int { return a.Notification.Time.Compare(b.Notification.Time) })
	for _, entry := range changes.Listed {
		q.add(entry)
		changes.AddCount(&entry.Notification, -1, entry.Notification.Time)
	}
	for _, left := range changes.Counts {
		q.Pending.AddCount(&message.Notification{Event: left.Event}, left.Count, q.now())
		q.changed.pending = true
	}
	q.advanceLocked(version)
}

// take returns what has to be stored, and considers it stored. After an error, the caller calls restore.
func (q *queue) take() *ledger.Writes {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := &ledger.Writes{Ended: sets.List(q.changed.ended), Expired: sets.List(q.changed.expired)}
	if q.changed.state {
		w.State = q.copyOfState()
	}
	if q.changed.pending {
		pending := q.Pending.Clone()
		w.Pending = &pending
	}
	if q.changed.sending {
		w.Sending, w.Sent = q.Sending, q.Sending == nil
	}
	for _, key := range sets.List(q.changed.found) {
		w.Found = append(w.Found, *q.Found[key])
	}
	for _, key := range sets.List(q.changed.threads) {
		w.Threads = append(w.Threads, *q.Threads[key])
	}
	q.changed = newChanged()
	return w
}

// copyOfState returns the state for a write.
func (q *queue) copyOfState() *ledger.State {
	state := q.State
	state.Since, state.Partial = maps.Clone(state.Since), slices.Clone(state.Partial)
	return &state
}

// restore notes that a write failed.
func (q *queue) restore(w *ledger.Writes) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.state = q.changed.state || w.State != nil
	q.changed.pending = q.changed.pending || w.Pending != nil
	q.changed.sending = q.changed.sending || w.Sending != nil || w.Sent
	for _, found := range w.Found {
		if q.Found[found.Key] != nil {
			q.changed.found.Insert(found.Key)
		}
	}
	for _, key := range w.Ended {
		if q.Found[key] == nil {
			q.changed.ended.Insert(key)
		}
	}
	for _, thread := range w.Threads {
		if q.Threads[thread.Key] != nil {
			q.changed.threads.Insert(thread.Key)
		}
	}
	for _, key := range w.Expired {
		if q.Threads[key] == nil {
			q.changed.expired.Insert(key)
		}
	}
}

func parseVersion(version string) uint64 {
	parsed, _ := strconv.ParseUint(version, 10, 64) // Empty is 0: from now on.
	return parsed
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
