// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// clients are the field managers under which kubectl writes whole objects without server-side apply.
var clients = sets.New("kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace")

// adopt adds to what is removed from an object that is taken over that what kubectl owns of it and is applied is the environment's
// alone: who has created the object has handed that over, and would keep it there otherwise once the catalog has it no longer.
// What is not applied stays theirs; if managers were migrated as kubectl does it for itself, the next apply would remove it.
func (d *draft) adopt(ctx context.Context, live, apply *unstructured.Unstructured, removal []byte) ([]byte, error) {
	typed, err := d.merger.Schemas.Typed(ctx, apply)
	if err != nil {
		return nil, err
	}
	applied, err := typed[0].ToFieldSet()
	if err != nil {
		return nil, errUnpredictable(live)
	}
	entries, err := handedOver(live.GetManagedFields(), withParents(applied))
	if err != nil || entries == nil {
		return removal, err
	}
	operations := []json.RawMessage{}
	if removal != nil {
		if err := json.Unmarshal(removal, &operations); err != nil {
			return nil, fmt.Errorf("read what is to be removed: %w", err)
		}
	}
	handover, err := json.Marshal(map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": entries})
	if err != nil {
		return nil, fmt.Errorf("write who owns what: %w", err)
	}
	return json.Marshal(append(operations, handover))
}

// withParents adds to fields those that they are in: who owns one of these keeps it there, and empty.
func withParents(fields *fieldpath.Set) *fieldpath.Set {
	out := fieldpath.NewSet()
	for path := range fields.All() {
		for i := range path {
			out.Insert(path[:i+1].Copy())
		}
	}
	return out
}

// handedOver are entries of managedFields when clients have handed over what is applied, nil if they own nothing of it. There is
// always one that owns something: of an object without, API servers note at the next apply that somebody owned it all.
func handedOver(entries []metav1.ManagedFieldsEntry, applied *fieldpath.Set) ([]metav1.ManagedFieldsEntry, error) {
	var out []metav1.ManagedFieldsEntry
	var ours *metav1.ManagedFieldsEntry
	taken := fieldpath.NewSet()
	for _, entry := range entries {
		fields, err := fieldsOf(entry)
		switch {
		case err != nil:
			return nil, err
		case entry.Manager == v1alpha1.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply:
			taken = taken.Union(fields)
			continue
		case !isClient(entry) || fields.Intersection(applied).Empty():
			out = append(out, entry)
			continue
		}
		taken, ours = taken.Union(fields.Intersection(applied)), entry.DeepCopy()
		if left := fields.Difference(applied); !left.Empty() {
			if err := setFields(&entry, left); err != nil {
				return nil, err
			}
			out = append(out, entry)
		}
	}
	if ours == nil {
		return nil, nil
	}
	ours.Manager, ours.Operation = v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply
	out = append(out, *ours)
	return out, setFields(&out[len(out)-1], taken)
}

// isClient says whether an entry is of an object that kubectl has written as a whole.
func isClient(entry metav1.ManagedFieldsEntry) bool {
	return clients.Has(entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("read the fields of %s: %w", entry.Manager, err)
	}
	return fields, nil
}

func setFields(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set) error {
	text, err := fields.ToJSON()
	if err != nil {
		return fmt.Errorf("write the fields of %s: %w", entry.Manager, err)
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(text))
	return nil
}
