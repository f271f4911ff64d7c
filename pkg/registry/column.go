// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// Types of cells in OpenAPI's terms.
const (
	text   = "string"
	number = "integer"
)

// none is shown for an empty value.
const none = "<none>"

// column is a column of a table whose rows show objects of type O.
type column[O any] struct {
	// name is the header. kubectl prints it in capitals.
	name        string
	description string
	// cellType is text or number.
	cellType string
	// wide columns only appear with -o wide.
	wide bool
	// cell returns the content for obj at the time now.
	cell func(obj O, now time.Time) any
}

// eraseColumns erases the type of the rows.
func eraseColumns[O object](columns []column[O]) []column[runtime.Object] {
	erased := make([]column[runtime.Object], len(columns))
	for i, c := range columns {
		erased[i] = column[runtime.Object]{
			name: c.name, description: c.description, cellType: c.cellType, wide: c.wide,
			cell: func(obj runtime.Object, now time.Time) any { return c.cell(obj.(O), now) },
		}
	}
	return erased
}

// textColumn shows a text, or <none> if it is empty.
func textColumn[O any](name, description string, value func(O) string) column[O] {
	return column[O]{
		name: name, description: description, cellType: text,
		cell: func(obj O, _ time.Time) any { return orNone(value(obj)) },
	}
}

// stateWidth is how many bytes of a state are shown beside the other columns.
const stateWidth = 80

// stateColumn shows the state of an object in one sentence. A long one is cut, because kubectl makes the column as wide as its widest cell.
// The whole sentence is in the status.
func stateColumn[O any](value func(O) string) column[O] {
	return textColumn("State", "Summary of the status, in a sentence.", func(obj O) string {
		return summary.Cut(printable.Line(value(obj)), stateWidth)
	})
}

// numberColumn shows a number.
func numberColumn[O any](name, description string, value func(O) int64) column[O] {
	return column[O]{
		name: name, description: description, cellType: number,
		cell: func(obj O, _ time.Time) any { return value(obj) },
	}
}

// agoColumn shows the time since an event, or <none> for nil and the zero time.
func agoColumn[O any](name, description string, value func(O) *metav1.Time) column[O] {
	return column[O]{
		name: name, description: description, cellType: text,
		cell: func(obj O, now time.Time) any { return ago(value(obj), now) },
	}
}

// ageColumn shows the age of the object.
func ageColumn[O object]() column[O] {
	return agoColumn("Age", "Time since the object was created.", func(obj O) *metav1.Time {
		created := obj.GetCreationTimestamp()
		return &created
	})
}

// conditionColumns show the status and reason of the condition Ready, and its message with -o wide.
func conditionColumns[O any](conditions func(O) []metav1.Condition) []column[O] {
	ready := func(obj O) metav1.Condition { return readyCondition(conditions(obj)) }
	return []column[O]{
		textColumn("Ready", "Whether the object does what its spec says.", func(obj O) string { return string(ready(obj).Status) }),
		textColumn("Reason", "Why it is ready or not, in one word.", func(obj O) string { return ready(obj).Reason }),
		wide(textColumn("Message", "Why it is ready or not, in a sentence.", func(obj O) string { return ready(obj).Message })),
	}
}

// readyCondition returns the condition Ready, or one with status Unknown if there is none.
func readyCondition(conditions []metav1.Condition) metav1.Condition {
	if found := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady); found != nil {
		return *found
	}
	return metav1.Condition{Status: metav1.ConditionUnknown}
}

// wide restricts a column to -o wide.
func wide[O any](c column[O]) column[O] {
	c.wide = true
	return c
}

// orNone replaces an empty text by <none>.
func orNone(value string) string {
	if value == "" {
		return none
	}
	return value
}

// abbreviatedList joins values. Of more than a number, it shows some and how many others there are.
func abbreviatedList[T ~string](values []T, most int) string {
	var shown []string
	for i, value := range values {
		if more := len(values) - i; i == most-1 && more > 1 {
			shown = append(shown, fmt.Sprintf("+%d", more))
			break
		}
		shown = append(shown, string(value))
	}
	return strings.Join(shown, ",")
}

// ago formats the time since an event to one or two units.
func ago(at *metav1.Time, now time.Time) string {
	if at.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(at.Time))
}
