// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fieldpath answers which field of an object a text such as /spec/containers[name=web]/image names, and how such
// a text is written.
//
// It is a JSON pointer (RFC 6901) that finds items of lists by what they are found by in Kubernetes, too: by their keys, as
// in /spec/ports[port=80,protocol=TCP], by themselves, as in /metadata/finalizers[=example.com/x], or by their index. A
// name or value that is empty or has a bracket, a comma or a control character in it, or begins with a quotation mark, is
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

// Path leads to a field.
type Path []Step

// Step leads from a value into it: to a field of a map, to the item of a list that has some keys, or to the item of a list
// that is a value.
type Step struct {
	// Field is a field of a map; the decimal digits of an index lead to an item of a list.
	Field string
	// Keys are those of a list's item, by name; nil: another kind of step.
	Keys []Key
	// IsValue says that Field is a list's item itself.
	IsValue bool
}

// Key is a field by which a list's item is found, and its value as text.
type Key struct{ Name, Text string }

// Of translates a path of managedFields.
func Of(p fieldpath.Path) Path {
	out := make(Path, len(p))
	for i, element := range p {
		switch {
		case element.FieldName != nil:
			out[i] = Step{Field: *element.FieldName}
		case element.Key != nil:
			out[i] = Step{Keys: keysOf(*element.Key)}
		case element.Value != nil:
			out[i] = Step{Field: textOf((*element.Value).Unstructured()), IsValue: true}
		case element.Index != nil:
			out[i] = Step{Field: strconv.Itoa(*element.Index)}
		}
	}
	return out
}

func keysOf(fields value.FieldList) []Key {
	keys := make([]Key, len(fields))
	for i, field := range fields {
		keys[i] = Key{field.Name, textOf(field.Value.Unstructured())}
	}
	return sorted(keys)
}

// sorted orders keys by name, so that paths can be compared.
func sorted(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	return keys
}

// textOf is how a value is written: a text as it is, everything else as JSON.
func textOf(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	out, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(out)
}

// Equal says whether two steps are written alike.
func (s Step) Equal(other Step) bool {
	return s.Field == other.Field && s.IsValue == other.IsValue && slices.Equal(s.Keys, other.Keys)
}

// Equal says whether two paths are written alike.
func (p Path) Equal(other Path) bool { return slices.EqualFunc(p, other, Step.Equal) }

// BeginsWith says whether a path leads to what another one leads to, or further.
func (p Path) BeginsWith(other Path) bool {
	return len(p) >= len(other) && p[:len(other)].Equal(other)
}
