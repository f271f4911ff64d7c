// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
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

// lockedApart is how many environments can be put at once.
const lockedApart = 64

// Copies are those of all environments. They may be used concurrently.
type Copies struct {
	table *storetable.Table
	keep  int
	// locks let one change at a time have an environment.
	locks keymutex.KeyMutex
}

// New returns the copies of a store, which must encrypt its rows. Of each environment, the highest keep revisions that were
// put, at least 1, and the one that was put last are kept.
func New(store *storetable.Store, keep int) *Copies {
	return &Copies{table: store.Table(TableName), keep: max(keep, 1), locks: keymutex.NewHashed(lockedApart)}
}

// Environment is whose copies they are.
type Environment struct {
	types.NamespacedName
	UID types.UID
}

// Key tells the objects of an environment apart.
type Key struct {
	schema.GroupKind
	Name string
}

func keyOf(object *unstructured.Unstructured) Key {
	return Key{object.GroupVersionKind().GroupKind(), object.GetName()}
}

// Change is what a run has done.
type Change struct {
	// Revision is that of the catalog which the environment has with the change, 0 if it has no revision as a whole: that takes
	// nothing from what was applied as of any.
	Revision int64
	// Applied are the objects that have been applied, each in full; what else there is stays.
	Applied []*unstructured.Unstructured
	// Deleted are the objects that have been deleted.
	Deleted []Key
}

// Put takes up what a run has done. It can be called again with the same change, and several times in a run.
func (c *Copies) Put(ctx context.Context, environment Environment, change Change) error {
	defer c.lock(environment.UID)()
	if err := c.put(ctx, environment, change); err != nil {
		return fmt.Errorf("keep what was applied in environment %s: %w", environment, err)
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
	if err := w.take(ctx, change); err != nil {
		return err
	}
	after := before.with(change.Revision, w.next)
	if !before.equal(after) {
		if err := w.write(ctx, environment, change.Revision); err != nil {
			return err
		}
	}
	return c.prune(ctx, environment.UID, before, after)
}

func (c *Copies) lock(uid types.UID) (unlock func()) {
	c.locks.LockKey(string(uid))
	return func() { _ = c.locks.UnlockKey(string(uid)) } // It fails for what is not locked.
}

// List returns what is applied in an environment as far as is known, and the revision that it has; 0 if it has none.
func (c *Copies) List(ctx context.Context, uid types.UID) ([]*unstructured.Unstructured, int64, error) {
	revision, there, err := c.current(ctx, uid)
	if err != nil {
		return nil, 0, fmt.Errorf("read what was applied in an environment: %w", err)
	}
	objects, err := c.read(ctx, uid, there)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o == nil }), revision, err
}

// Revision returns the one that an environment has, 0 if it has none.
func (c *Copies) Revision(ctx context.Context, uid types.UID) (int64, error) {
	revision, _, err := c.current(ctx, uid)
	if err != nil {
		return 0, fmt.Errorf("read which revision was applied in an environment: %w", err)
	}
	return revision, nil
}

// At returns what was applied in an environment when a revision was put last, false unless all of it is known.
func (c *Copies) At(ctx context.Context, uid types.UID, revision int64) ([]*unstructured.Unstructured, bool, error) {
	if revision == between {
		return nil, false, nil
	}
	there, err := c.head(ctx, uid, revision)
	if err != nil {
		return nil, false, fmt.Errorf("read what was applied as of revision %d: %w", revision, err)
	}
	objects, err := c.read(ctx, uid, there)
	if err != nil || there == nil || slices.Contains(objects, nil) {
		return nil, false, err
	}
	return objects, true, nil
}

// Get returns an object as it was last applied in an environment, nil if it was not, as far as is known.
func (c *Copies) Get(ctx context.Context, uid types.UID, key Key) (*unstructured.Unstructured, error) {
	_, there, err := c.current(ctx, uid)
	if err != nil {
		return nil, fmt.Errorf("read what was applied in an environment: %w", err)
	}
	number, applied := there[key]
	if !applied {
		return nil, nil
	}
	return c.object(ctx, uid, number)
}

// Revisions returns the revisions that were put and that there still is something of, the lowest first.
func (c *Copies) Revisions(ctx context.Context, uid types.UID) ([]int64, error) {
	there, err := c.history(ctx, uid)
	return there.revisions(), err
}

// read returns the objects that a head names, in the order of their keys, nil in the place of those that are gone.
func (c *Copies) read(ctx context.Context, uid types.UID, h head) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, len(h))
	for _, key := range h.sorted() {
		object, err := c.object(ctx, uid, h[key])
		if err != nil {
			return nil, fmt.Errorf("read %s %s as it was applied: %w", key.Kind, key.Name, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
