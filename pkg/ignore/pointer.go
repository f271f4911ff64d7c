// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// step leads from a value into it: to a field of a map, to the item of a list that has some keys, or to the item of a
// list that is a value.
type step struct {
	// field is a field of a map; the decimal digits of an index lead to an item of a list.
	field string
	// keys are those of a list's item, by name; nil: another kind of step.
	keys []key
	// isValue says that field is a list's item itself.
	isValue bool
}

type key struct{ name, text string }

func (s step) equal(other step) bool {
	return s.field == other.field && s.isValue == other.isValue && slices.Equal(s.keys, other.keys)
}

// path leads to a field.
type path []step

// beginsWith says whether a path leads to what another one leads to, or further.
func (p path) beginsWith(other path) bool {
	return len(p) >= len(other) && slices.EqualFunc(p[:len(other)], other, step.equal)
}

// identity is what tells objects apart, and must not be left out.
var identity = []path{
	{{field: "apiVersion"}}, {{field: "kind"}}, {{field: "metadata"}},
	{{field: "metadata"}, {field: "name"}}, {{field: "metadata"}, {field: "namespace"}},
}

func (p path) isIdentity() bool {
	return slices.ContainsFunc(identity, func(other path) bool { return slices.EqualFunc(p, other, step.equal) })
}

var (
	errSyntax = errors.New("must be a JSON pointer such as /spec/replicas or /spec/containers[name=web]/image, with ~1 for / and ~0 for ~")
	// errIdentity refuses what would make two objects one.
	errIdentity = errors.New("must not leave out what tells objects apart: apiVersion, kind, metadata.name and metadata.namespace")
)

// CheckPointer says what is wrong with a pointer: a JSON pointer (RFC 6901) whose segments may pick a list's item by one
// key or several, as in /spec/ports[port=80,protocol=TCP]/targetPort.
func CheckPointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}

func parsePointer(pointer string) (path, error) {
	var p path
	for rest := pointer; rest != ""; {
		after, ok := strings.CutPrefix(rest, "/")
		if !ok {
			return nil, errSyntax
		}
		end := strings.IndexAny(after, "/[]")
		if end < 0 {
			end = len(after)
		}
		field, err := unescape(after[:end])
		if err != nil {
			return nil, err
		}
		p = append(p, step{field: field})
		rest = after[end:]
		if picked, ok := strings.CutPrefix(rest, "["); ok {
			inside, behind, closed := strings.Cut(picked, "]")
			keys, err := parseKeys(inside)
			if err != nil || !closed {
				return nil, errSyntax
			}
			p, rest = append(p, step{keys: keys}), behind
		}
	}
	if len(p) == 0 {
		return nil, errSyntax
	}
	if p.isIdentity() {
		return nil, errIdentity
	}
	return p, nil
}

// unescape reads a segment of a pointer.
func unescape(segment string) (string, error) {
	if segment == "" {
		return "", errSyntax
	}
	for i, part := range strings.Split(segment, "~") {
		if i > 0 && !strings.HasPrefix(part, "0") && !strings.HasPrefix(part, "1") {
			return "", errSyntax
		}
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment), nil
}

func parseKeys(inside string) ([]key, error) {
	var keys []key
	for part := range strings.SplitSeq(inside, ",") {
		name, text, ok := strings.Cut(part, "=")
		if !ok || name == "" || strings.Contains(part, "[") {
			return nil, errSyntax
		}
		keys = append(keys, key{name, text})
	}
	return sorted(keys), nil
}

// sorted orders keys by name, so that paths can be compared.
func sorted(keys []key) []key {
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.name, b.name) })
	return keys
}

// textOf is how a pointer writes a simple value.
func textOf(value any) string {
	return fmt.Sprint(value)
}
