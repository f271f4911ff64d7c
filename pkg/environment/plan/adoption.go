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
	"github.com/configbutler/slipstream/pkg/kube/diff"
)

// kubectlManagers are the field managers of kubectl commands that write whole objects without server-side apply.
var kubectlManagers = sets.New("kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace")

// adopt transfers the applied fields that kubectl owns to the environment when an object is taken over. Otherwise kubectl's
// ownership would keep a field that the catalog later removes. Fields that are not applied stay with kubectl; migrating the
// whole manager, as kubectl itself does, would let the next apply remove them.
func adopt(ctx context.Context, schemas *diff.Schemas, live, apply *unstructured.Unstructured, removal []byte) ([]byte, error) {
	typed, err := schemas.Typed(ctx, apply)
	if err != nil {
		return nil, err
	}
	applied, err := typed[0].ToFieldSet()
	if err != nil {
		return nil, errUnpredictable(live)
	}
	entries, err := transferred(live.GetManagedFields(), withParents(applied))
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

// withParents adds the parents of all fields. The owner of a parent keeps it in the object, possibly empty.
func withParents(fields *fieldpath.Set) *fieldpath.Set {
	out := fieldpath.NewSet()
	for path := range fields.All() {
		for i := range path {
			out.Insert(path[:i+1].Copy())
		}
	}
	return out
}

// transferred returns the entries of managedFields after the applied fields of kubectl were transferred to the environment,
// nil if kubectl owns none of them. The environment's entry is never empty: for an object without an entry, API servers
// assume at the next apply that one unknown manager owned everything.
func transferred(entries []metav1.ManagedFieldsEntry, applied *fieldpath.Set) ([]metav1.ManagedFieldsEntry, error) {
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
		case !isKubectl(entry) || fields.Intersection(applied).Empty():
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

// isKubectl reports whether an entry belongs to a kubectl command that wrote the whole object.
func isKubectl(entry metav1.ManagedFieldsEntry) bool {
	return kubectlManagers.Has(entry.Manager) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

// fieldsOf returns the fields that an entry of managedFields lists.
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
