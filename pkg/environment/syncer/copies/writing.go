// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

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
	for _, object := range change.Applied {
		if err := w.addObject(ctx, object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, key := range change.Deleted {
		delete(w.next, key)
	}
	return nil
}

// addObject adds an object to the head. Its content gets a new number if it differs from the stored one.
func (w *writing) addObject(ctx context.Context, object *unstructured.Unstructured) error {
	value, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encode it: %w", err)
	}
	if number, known := w.next[keyOf(object)]; known {
		before, _, err := w.copies.table.Get(ctx, contentsOf(w.uid)+number)
		if err != nil || bytes.Equal(before, value) {
			return err
		}
	}
	number := string(uuid.NewUUID())
	w.next[keyOf(object)] = number
	w.contents = append(w.contents, table.Row{Key: contentsOf(w.uid) + number, Value: value})
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
