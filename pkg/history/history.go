// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Object identifies an object, regardless of the version of its type.
type Object struct {
	schema.GroupResource
	Namespace string
	Name      string
}

// Config configures a History. All fields are required.
type Config struct {
	// Changes is the table of stored Changes: the objects that the API serves, with a transformer of Transformers.
	Changes *table.Table
	// Rows is the table of prepared pushes and of the index.
	Rows *table.Table
	// Namespace is where Changes of cluster-scoped objects are stored.
	Namespace string
	Clock     clock.WithTicker
}

// History stores Changes. It is safe for concurrent use. Of several processes with the same store, only the leader uses it.
type History struct {
	config   Config
	prepared prepared
	index    index
	// added is the number of Changes that were recorded since old ones were last deleted.
	added atomic.Int64

	mu sync.Mutex
	// subscribers are called with the object of each new Change, by number.
	subscribers map[int]func(Object)
	subscribed  int
}

// New returns a History.
func New(config Config) *History {
	return &History{config: config, index: index{rows: config.Rows, clock: config.Clock}, subscribers: map[int]func(Object){}}
}

// Prepare stores the Changes of a push, which moves a branch to a new tip, before the push is sent. Each has one commit.
func (h *History) Prepare(ctx context.Context, tip string, changes []v1alpha1.ChangeSpec) error {
	encoded, err := h.encoded(changes)
	if err != nil {
		return err
	}
	if err := h.config.Rows.Put(ctx, pushRows(tip, encoded, h.config.Clock.Now())...); err != nil {
		return fmt.Errorf("prepare the Changes of a push: %w", err)
	}
	h.prepared.add(tip, encoded)
	return nil
}

// encoded returns Changes with their metadata, encoded.
func (h *History) encoded(specs []v1alpha1.ChangeSpec) ([]preparedChange, error) {
	changes := make([]preparedChange, len(specs))
	for i := range specs {
		change := &changes[i].Change
		change.Spec = specs[i]
		change.Name, change.UID = nameOf(&specs[i]), uidOf(&specs[i])
		if change.Namespace = specs[i].Object.Namespace; change.Namespace == "" {
			change.Namespace = h.config.Namespace
		}
		change.CreationTimestamp.Time = specs[i].Time.Truncate(time.Second)
		value, err := encodeChange(change)
		if err != nil {
			return nil, err
		}
		changes[i].stored = Compress(value)
	}
	return changes, nil
}

// Record stores the prepared Changes of a push that the remote has accepted, so that the API serves them. It is idempotent, and must
// be called again after an error. Once it has succeeded, the caller calls Discard; what is not discarded expires.
func (h *History) Record(ctx context.Context, tip string) error {
	if push, found := h.prepared.take(tip); found {
		return h.record(ctx, push)
	}
	for row, err := range h.config.Rows.Scan(ctx, pushPrefix(tip)) {
		if err != nil {
			return fmt.Errorf("read the prepared Changes of a push: %w", err)
		}
		changes, err := decodePush(row)
		if err != nil {
			logUnreadable(ctx, err)
		}
		if err := h.record(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

// record adds Changes to the index and stores them. If the process dies in between, Record is called again. The entries are written first:
// a list by the index has all Changes up to its resourceVersion, and a watch from there has the others.
func (h *History) record(ctx context.Context, changes []preparedChange) error {
	changes = combined(changes)
	stored, err := h.index.add(ctx, changes)
	if err != nil {
		return err
	}
	defer stored()
	if err := h.insert(ctx, changes); err != nil {
		return err
	}
	h.notify(changes)
	return nil
}

// Reset forgets what is in memory, when this process begins to lead again: another process may have recorded Changes meanwhile.
func (h *History) Reset() {
	h.prepared.clear()
	h.index.reset()
}

// Discard deletes the prepared Changes of a push that the remote has rejected, or that are recorded.
func (h *History) Discard(ctx context.Context, tip string) error {
	h.prepared.take(tip)
	var keys []string
	for key, err := range h.config.Rows.Keys(ctx, pushPrefix(tip)) {
		if err != nil {
			return fmt.Errorf("find the prepared Changes of a push: %w", err)
		}
		keys = append(keys, key)
	}
	if err := h.config.Rows.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("delete the prepared Changes of a push: %w", err)
	}
	return nil
}

// Lookup returns the Changes of objects, the newest first.
func (h *History) Lookup(ctx context.Context, objects ...Object) (map[Object][]v1alpha1.Change, error) {
	wanted := map[objectHashes]bool{}
	for _, o := range objects {
		wanted[objectHashes{h.namespaceOf(o), hashText(o.Name), hashText(o.Resource), hashText(o.Group)}] = true
	}
	positions, _, err := find(ctx, h.config.Rows, page{}, func(e *entry) bool { return wanted[e.hashes()] })
	if err != nil {
		return nil, err
	}
	found := map[Object][]v1alpha1.Change{}
	for _, at := range positions {
		change, exists, err := h.read(ctx, at.key())
		if err != nil {
			return nil, err
		}
		if object := objectOf(&change.Spec); exists && slices.Contains(objects, object) {
			found[object] = append(found[object], change)
		}
	}
	return found, nil
}

// namespaceOf returns the namespace of an object's Changes.
func (h *History) namespaceOf(o Object) string {
	if o.Namespace == "" {
		return h.config.Namespace
	}
	return o.Namespace
}

// logUnreadable logs a row that cannot be decoded. It is skipped, so that it does not block pushes.
func logUnreadable(ctx context.Context, err error) {
	klog.FromContext(ctx).Error(err, "Failed to decode a row of the history")
}

// Subscribe calls recorded with the object of each Change that is recorded from now on, until cancel is called. It must not block.
func (h *History) Subscribe(recorded func(Object)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	number := h.subscribed
	h.subscribed++
	h.subscribers[number] = recorded
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subscribers, number)
	}
}

// notify calls the subscribers.
func (h *History) notify(changes []preparedChange) {
	h.added.Add(int64(len(changes)))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, recorded := range h.subscribers {
		for i := range changes {
			recorded(objectOf(&changes[i].Spec))
		}
	}
}
