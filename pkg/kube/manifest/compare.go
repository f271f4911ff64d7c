// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// DifferingFields returns the paths of the fields in which two files of an object differ, sorted, in the syntax of pkg/kube/fieldpath. If
// a whole map or list item exists in one of the files only, it is one path. Items of a list are identified by their names, as in
// /spec/containers[name=web]; a list with other items is one field, as is one whose items are only in another order. If the paths of a file
// would take more than 8 MiB, there are none.
//
// The files are those that Render wrote: reading their text takes a few microseconds for each KiB, far less than decoding YAML. For other
// files the result may be incomplete.
func DifferingFields(before, after []byte) []string {
	if bytes.Equal(before, after) {
		return nil
	}
	old, changed := linesOf(before), linesOf(after)
	if fields := differing(withoutCommon(old, changed, 0)); len(fields) > 0 {
		return fields
	}
	return differing(old, changed) // Files that Render did not write may differ outside of fields.
}

// differing returns the paths of the fields in which the lines of two maps differ.
func differing(before, after [][]byte) []string {
	old, changed := flatten(before), flatten(after)
	if old.tooLarge() || changed.tooLarge() {
		return nil
	}
	paths := map[string]struct{}{}
	old.differences(changed, paths)
	changed.differences(old, paths)
	return slices.Sorted(maps.Keys(paths))
}

// withoutCommon returns the lines of two maps whose fields are at a column without the fields with which both begin and those with which both
// end. If one field is left of each, which has the same name and is a map, the same is done with its fields.
func withoutCommon(a, b [][]byte, column int) (restA, restB [][]byte) {
	fieldsA, fieldsB := fieldLines(a, column), fieldLines(b, column)
	for len(fieldsA) > 0 && len(fieldsB) > 0 && slices.EqualFunc(fieldsA[0], fieldsB[0], bytes.Equal) {
		fieldsA, fieldsB = fieldsA[1:], fieldsB[1:]
	}
	for len(fieldsA) > 0 && len(fieldsB) > 0 && slices.EqualFunc(fieldsA[len(fieldsA)-1], fieldsB[len(fieldsB)-1], bytes.Equal) {
		fieldsA, fieldsB = fieldsA[:len(fieldsA)-1], fieldsB[:len(fieldsB)-1]
	}
	if len(fieldsA) != 1 || len(fieldsB) != 1 || !isMapField(fieldsA[0], column) || !isMapField(fieldsB[0], column) ||
		!bytes.Equal(fieldsA[0][0], fieldsB[0][0]) {
		return slices.Concat(fieldsA...), slices.Concat(fieldsB...)
	}
	name := fieldsA[0][:1:1]
	restA, restB = withoutCommon(fieldsA[0][1:], fieldsB[0][1:], column+indentStep)
	return append(name, restA...), append(name, restB...)
}

// fieldLines returns the lines of each field of a map whose fields are at a column.
func fieldLines(lines [][]byte, column int) (fields [][][]byte) {
	start := 0
	for i, line := range lines {
		if i > start && !isNestedBelow(line, column) && !isItem(line, column) && !bytes.HasPrefix(fromColumn(line, column), []byte(": ")) {
			fields, start = append(fields, lines[start:i]), i
		}
	}
	if start < len(lines) {
		fields = append(fields, lines[start:])
	}
	return fields
}

// fromColumn returns a line from a column on.
func fromColumn(line []byte, column int) []byte { return line[min(column, len(line)):] }

// isMapField reports whether the value of a field at a column is a map with fields.
func isMapField(lines [][]byte, column int) bool {
	return len(lines) > 1 && bytes.HasSuffix(lines[0], []byte(":")) && !bytes.HasPrefix(fromColumn(lines[0], column), []byte("? ")) &&
		indentation(lines[1]) == column+indentStep && len(lines[1]) > column+indentStep
}

// differences adds the paths of the entries that other lacks or has with another value.
func (f *flat) differences(other *flat, paths map[string]struct{}) {
	for i, e := range f.entries {
		at, exists := other.places[e.path]
		if !exists || e.kind != other.entries[at].kind || !bytes.Equal(e.value, other.entries[at].value) ||
			isReordered(e.names, other.entries[at].names) {
			paths[f.outermost(i, other)] = struct{}{}
		}
	}
}

// isReordered reports whether two lists have the same names in another order.
func isReordered(a, b []string) bool {
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// outermost returns the path of an entry that differs in other, or of the outermost map, list or item around it that other lacks.
func (f *flat) outermost(at int, other *flat) string {
	for parent := f.entries[at].parent; parent >= 0; parent = f.entries[parent].parent {
		place, exists := other.places[f.entries[parent].path]
		if !exists || other.entries[place].kind != f.entries[parent].kind {
			at = parent
		}
	}
	return f.entries[at].path
}

// CountLines counts the lines that only one of two files has. A line that both have more than once counts as often as one has it more.
func CountLines(before, after []byte) (added, removed int) {
	before, after = trimCommon(before, after)
	counts := map[string]int{}
	for line := range bytes.Lines(before) {
		counts[string(line)]++
	}
	for line := range bytes.Lines(after) {
		counts[string(line)]--
	}
	for _, count := range counts {
		added, removed = added+max(-count, 0), removed+max(count, 0)
	}
	return added, removed
}

// trimCommon cuts off the lines with which both files begin, and those with which both end.
func trimCommon(a, b []byte) (restA, restB []byte) {
	common, n := 0, min(len(a), len(b))
	for common < n && a[common] == b[common] {
		common++
	}
	start := bytes.LastIndexByte(a[:common], '\n') + 1
	a, b = a[start:], b[start:]
	common, n = 0, min(len(a), len(b))
	for common < n && a[len(a)-1-common] == b[len(b)-1-common] {
		common++
	}
	tail := a[len(a)-common:]
	cut := bytes.IndexByte(tail, '\n') + 1 // The line before the first line end may differ.
	if cut == 0 {
		return a, b
	}
	return a[:len(a)-common+cut], b[:len(b)-common+cut]
}

// isNestedBelow reports whether a line is blank or begins to the right of a column.
func isNestedBelow(line []byte, column int) bool {
	width := indentation(line)
	return width == len(line) || width > column
}

func indentation(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// unquoted returns the text of a key or value that is not a block scalar.
func unquoted(text []byte) string {
	switch {
	case len(text) < 2 || text[0] != text[len(text)-1]:
	case text[0] == '\'':
		return strings.ReplaceAll(string(text[1:len(text)-1]), "''", "'")
	case text[0] == '"':
		return unescaped(string(text[1 : len(text)-1]))
	}
	return string(text)
}
