// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// writing is a head that is being written.
type writing struct {
	copies *Copies
	uid    types.UID
	next   head
	// contents are the rows of contents that the head names and that are not stored yet.
	contents []table.Row
}

// add adds a change to the head.
func (w *writing) add(ctx context.Context, change Change) error {
	var e encoder
	for _, object := range change.Applied {
		if err := w.addObject(ctx, &e, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, key := range change.Deleted {
		delete(w.next, key)
	}
	return nil
}

// addObject adds an object to the head. The parts of its content get new numbers if it differs from the stored one.
func (w *writing) addObject(ctx context.Context, e *encoder, object *unstructured.Unstructured) error {
	content, err := e.encode(object)
	if err != nil {
		return err
	}
	key := keyOf(object)
	before, err := w.copies.content(ctx, w.uid, w.next[key])
	if err != nil || bytes.Equal(before, content) {
		return err
	}
	var numbers []string
	for part := range slices.Chunk(bytes.Clone(content), maxPart) {
		number := string(uuid.NewUUID())
		numbers = append(numbers, number)
		w.contents = append(w.contents, table.Row{Key: contentsOf(w.uid) + number, Value: part})
	}
	w.next[key] = numbers
	return nil
}

// write writes the contents first, then the head that names them, and then the row that makes it the current one.
func (w *writing) write(ctx context.Context, environment Environment, revision int64) error {
	row, err := w.next.row(w.uid, revision)
	if err != nil {
		return err
	}
	rows := []table.Row{{Key: environmentRow(w.uid), Value: []byte(environment.String())}}
	rows = append(rows, w.contents...)
	return w.copies.table.Put(ctx, append(rows, row, table.Row{Key: currentRow(w.uid), Value: []byte(numbered(revision))})...)
}

// discard deletes the contents that were written before a write failed. It leaves those that a head names: the write may have been
// committed although it failed.
func (w *writing) discard(ctx context.Context) error {
	stored, err := w.copies.history(ctx, w.uid)
	if err != nil {
		return err
	}
	var keys []string
	named := stored.contents()
	for _, row := range w.contents {
		if !named.Has(strings.TrimPrefix(row.Key, contentsOf(w.uid))) {
			keys = append(keys, row.Key)
		}
	}
	return w.copies.table.Delete(ctx, keys...)
}
