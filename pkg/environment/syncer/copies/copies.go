// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"

	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

// TableName is the table in the work store.
const TableName = "copies"

// lockCount is the number of locks, and so the maximum number of environments whose copies are written at the same time.
const lockCount = 64

// Copies stores the copies of all environments. It is safe for concurrent use.
type Copies struct {
	table *storetable.Table
	keep  int
	// locks serialize the changes of an environment.
	locks keymutex.KeyMutex
}

// New returns the Copies in a store, which must encrypt its rows. For each environment, they keep the highest keep revisions
// that were put, at least 1, and the one that was put last.
func New(store *storetable.Store, keep int) *Copies {
	return &Copies{table: store.Table(TableName), keep: max(keep, 1), locks: keymutex.NewHashed(lockCount)}
}

// Environment is the owner of copies.
type Environment struct {
	types.NamespacedName
	UID types.UID
}

// Key identifies an object of an environment.
type Key struct {
	schema.GroupKind
	Name string
}

func keyOf(object *unstructured.Unstructured) Key {
	return Key{object.GroupVersionKind().GroupKind(), object.GetName()}
}

// Change is the result of a sync.
type Change struct {
	// Revision is the catalog revision of the environment after the sync, 0 if not all of its objects have the same revision.
	// A change with 0 does not affect the copies of any revision.
	Revision int64
	// Applied are the objects that have been applied, each in full. Copies of other objects remain.
	Applied []*unstructured.Unstructured
	// Deleted are the objects that have been deleted.
	Deleted []Key
}

// Put stores the result of a sync. It is idempotent, and can be called several times during a sync.
func (c *Copies) Put(ctx context.Context, environment Environment, change Change) error {
	defer c.lock(environment.UID)()
	if err := c.put(ctx, environment, change); err != nil {
		return fmt.Errorf("store the applied objects of environment %s: %w", environment, err)
	}
	return nil
}

func (c *Copies) put(ctx context.Context, environment Environment, change Change) error {
	before, err := c.history(ctx, environment.UID)
	if err != nil {
		return err
	}
	w := &writing{copies: c, uid: environment.UID, next: maps.Clone(before.heads[before.current])}
	if w.next == nil {
		w.next = head{}
	}
	if err := w.add(ctx, change); err != nil {
		return err
	}
	after := before.with(change.Revision, w.next)
	if !before.equal(after) {
		if err := w.write(ctx, environment, change.Revision); err != nil {
			return errors.Join(err, w.discard(ctx))
		}
	}
	return c.prune(ctx, environment.UID, before, after)
}

func (c *Copies) lock(uid types.UID) (unlock func()) {
	c.locks.LockKey(string(uid))
	return func() { _ = c.locks.UnlockKey(string(uid)) } // UnlockKey fails only if the key is not locked.
}

// List returns the stored objects that were last applied in an environment, and its revision, 0 if it has none.
func (c *Copies) List(ctx context.Context, uid types.UID) ([]*unstructured.Unstructured, int64, error) {
	revision, applied, err := c.current(ctx, uid)
	if err != nil {
		return nil, 0, fmt.Errorf("read the applied objects of an environment: %w", err)
	}
	objects, err := c.read(ctx, uid, applied)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o == nil }), revision, err
}

// Revision returns the revision of an environment, 0 if it has none.
func (c *Copies) Revision(ctx context.Context, uid types.UID) (int64, error) {
	revision, _, err := c.current(ctx, uid)
	if err != nil {
		return 0, fmt.Errorf("read the applied revision of an environment: %w", err)
	}
	return revision, nil
}

// At returns the objects that an environment had when a revision was last put, false unless all of them are stored.
func (c *Copies) At(ctx context.Context, uid types.UID, revision int64) ([]*unstructured.Unstructured, bool, error) {
	if revision == between {
		return nil, false, nil
	}
	applied, err := c.head(ctx, uid, revision)
	if err != nil {
		return nil, false, fmt.Errorf("read the applied objects of revision %d: %w", revision, err)
	}
	objects, err := c.read(ctx, uid, applied)
	if err != nil || applied == nil || slices.Contains(objects, nil) {
		return nil, false, err
	}
	return objects, true, nil
}

// read returns the objects in a head, in the order of their keys. Those whose content was deleted are nil.
func (c *Copies) read(ctx context.Context, uid types.UID, h head) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, len(h))
	for _, key := range h.sorted() {
		object, err := c.object(ctx, uid, h[key])
		if err != nil {
			return nil, fmt.Errorf("read the applied %s %s: %w", key.Kind, key.Name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
