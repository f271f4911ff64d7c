// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldpath parses and formats paths to fields of an object, such as /spec/containers[name=web]/image.
//
// A path is a JSON pointer (RFC 6901) that can also identify list items as Kubernetes does: by their keys, as in
// /spec/ports[port=80,protocol=TCP], by their value, as in /metadata/finalizers[=example.com/x], or by their index. A
// name or value that is empty, contains a bracket, a comma or a control character, or begins with a quotation mark, is
// quoted as in Go: /spec/"a[b]" and /env[name="a,b"].
package fieldpath

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Path identifies a field of an object.
type Path []Step

// Step selects one value within another: a field of a map, the list item with certain keys, or the list item with a
// certain value.
type Step struct {
	// Field is the name of a map's field, or the index of a list item in decimal digits.
	Field string
	// Keys identify a list item, sorted by name. They are nil for other kinds of steps.
	Keys []Key
	// IsValue is set if Field is the value of a list item.
	IsValue bool
}

// Key is a field that identifies a list item, with its value as text.
type Key struct{ Name, Text string }

// Of converts a path of managedFields.
func Of(p fieldpath.Path) Path {
	out := make(Path, len(p))
	for i, element := range p {
		switch {
		case element.FieldName != nil:
			out[i] = Step{Field: *element.FieldName}
		case element.Key != nil:
			out[i] = Step{Keys: keysOf(*element.Key)}
		case element.Value != nil:
			out[i] = Step{Field: Text((*element.Value).Unstructured()), IsValue: true}
		case element.Index != nil:
			out[i] = Step{Field: strconv.Itoa(*element.Index)}
		}
	}
	return out
}

func keysOf(fields value.FieldList) []Key {
	keys := make([]Key, len(fields))
	for i, field := range fields {
		keys[i] = Key{field.Name, Text(field.Value.Unstructured())}
	}
	return sorted(keys)
}

// sorted orders keys by name, so that paths are comparable.
func sorted(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// Text formats a value as a Key has it: a string as it is, everything else as JSON.
func Text(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

// Equal reports whether two steps have the same text.
func (s Step) Equal(other Step) bool {
	return s.Field == other.Field && s.IsValue == other.IsValue && slices.Equal(s.Keys, other.Keys)
}

// Equal reports whether two paths have the same text.
func (p Path) Equal(other Path) bool { return slices.EqualFunc(p, other, Step.Equal) }

// BeginsWith reports whether p equals other or leads to something below it.
func (p Path) BeginsWith(other Path) bool {
	return len(p) >= len(other) && p[:len(other)].Equal(other)
}
