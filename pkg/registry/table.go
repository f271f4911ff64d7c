// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// table converts objects to the tables that kubectl get prints.
type table struct {
	columns []column[runtime.Object]
	// nameLast puts the column NAME after the others: names of objects that no user has chosen.
	nameLast bool
	clock    clock.PassiveClock
}

var _ rest.TableConvertor = &table{}

// ConvertToTable converts an object or a list.
func (t *table) ConvertToTable(_ context.Context, obj runtime.Object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if wanted, ok := options.(*metav1.TableOptions); !ok || !wanted.NoHeaders {
		result.ColumnDefinitions = t.definitions()
	}
	addRow := func(item runtime.Object) error {
		row, err := t.row(item)
		result.Rows = append(result.Rows, row)
		return err
	}
	if !meta.IsListType(obj) {
		if err := addRow(obj); err != nil {
			return nil, err
		}
		return result, copyMeta(result, obj)
	}
	if err := meta.EachListItem(obj, addRow); err != nil {
		return nil, fmt.Errorf("making a table of a list: %w", err)
	}
	return result, copyMeta(result, obj)
}

// definitions returns the column definitions: NAME and those of the kind.
func (t *table) definitions() []metav1.TableColumnDefinition {
	name := metav1.TableColumnDefinition{Name: "Name", Type: text, Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
	var definitions []metav1.TableColumnDefinition
	for _, c := range t.columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: c.cellType, Description: c.description}
		if c.wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return withName(definitions, name, t.nameLast)
}

// withName adds the column NAME to the others.
func withName[T any](others []T, name T, last bool) []T {
	if last {
		return append(others, name)
	}
	return slices.Insert(others, 0, name)
}

// row returns the row of an object. Invisible characters are escaped, because names and texts are chosen by users.
func (t *table) row(obj runtime.Object) (metav1.TableRow, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("making a table row of %T: %w", obj, err)
	}
	now := t.clock.Now()
	var cells []any
	for _, c := range t.columns {
		cell := c.cell(obj, now)
		if text, ok := cell.(string); ok {
			cell = printable.Text(text)
		}
		cells = append(cells, cell)
	}
	return metav1.TableRow{Cells: withName(cells, any(accessor.GetName()), t.nameLast), Object: runtime.RawExtension{Object: obj}}, nil
}

// copyMeta copies the resourceVersion, from which a watch continues, and the continue token of a list.
func copyMeta(result *metav1.Table, obj runtime.Object) error {
	if list, err := meta.ListAccessor(obj); err == nil {
		result.ResourceVersion = list.GetResourceVersion()
		result.Continue = list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
		return nil
	}
	single, err := meta.CommonAccessor(obj)
	if err != nil {
		return fmt.Errorf("making a table of %T: %w", obj, err)
	}
	result.ResourceVersion = single.GetResourceVersion()
	return nil
}
