// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

const (
	// maxFlattened is how deep maps are nested in a flat file. What is deeper is one field.
	maxFlattened = 100
	// maxPaths bounds the length of all paths of a flat file, in bytes. The paths of an object of 1 MiB with short keys fit in. Without it a
	// file of long nested keys could take a thousand times its size.
	maxPaths = 8 << 20
)

// entry is a value in a file.
type entry struct {
	path string
	// parent is the index of the map or list item around it, -1 for none.
	parent int
	kind   entryKind
	// value is the text of a field. names are those of the items of a list, in their order.
	value []byte
	names []string
}

// entryKind is a kind of a value in a file.
type entryKind int

const (
	aField entryKind = iota // a scalar, a list whose items have no names, or an empty map or list
	aMap
	aList // a list whose items have names
)

// flat is a file as a list of its values, outer before inner.
type flat struct {
	lines   [][]byte
	entries []entry
	// places are the indices of the entries by path.
	places map[string]int
	// next is the line that is read next.
	next int
	// bytes is the length of all paths. If it exceeds maxPaths, the file is too large, and its entries are incomplete.
	bytes int
}

func (f *flat) tooLarge() bool { return f.bytes > maxPaths }

// linesOf returns the lines of a file that encode wrote.
func linesOf(file []byte) [][]byte {
	return bytes.Split(bytes.TrimSuffix(bytes.TrimPrefix(file, []byte(unappliable)), []byte("\n")), []byte("\n"))
}

// flatten reads the lines of a file that encode wrote.
func flatten(lines [][]byte) *flat {
	f := &flat{lines: lines, entries: make([]entry, 0, len(lines)), places: make(map[string]int, len(lines))}
	for f.next < len(lines) && !f.tooLarge() {
		start := f.next
		f.mapping(0, "", -1, 0)
		if f.next == start {
			f.next++ // Not written by encode.
		}
	}
	return f
}

// add adds an entry and returns its index.
func (f *flat) add(e entry) int {
	f.bytes += len(e.path)
	f.places[e.path] = len(f.entries)
	f.entries = append(f.entries, e)
	return len(f.entries) - 1
}

// mapping reads the fields of a map at a column.
func (f *flat) mapping(column int, path string, parent, depth int) {
	for f.next < len(f.lines) && !f.tooLarge() {
		line := f.lines[f.next]
		if indentation(line) != column || len(line) == column {
			return
		}
		key, value, ok := f.key(line[column:])
		if !ok {
			return
		}
		f.field(column, path+stepOf(key), value, parent, depth)
	}
}

// key reads the key of the line that is read next. value is what follows its colon. ok is false if the line has no key.
func (f *flat) key(text []byte) (key string, value []byte, ok bool) {
	if long, isLong := bytes.CutPrefix(text, []byte("? ")); isLong && f.next+1 < len(f.lines) {
		value, ok = bytes.CutPrefix(bytes.TrimLeft(f.lines[f.next+1], " "), []byte(":"))
		if ok {
			f.next++
		}
		return unquoted(long), value, ok
	}
	end := keyEnd(text)
	if end < 0 {
		return "", nil, false
	}
	return unquoted(text[:end]), text[end+1:], true
}

// keyEnd returns the position of the colon after the key with which a text begins; -1 if there is none.
func keyEnd(text []byte) int {
	start := 0
	if len(text) > 0 && (text[0] == '"' || text[0] == '\'') {
		if start = quoteEnd(text); start < 0 || start == len(text) || text[start] != ':' {
			return -1
		}
		return start
	}
	if end := bytes.Index(text, []byte(": ")); end >= 0 {
		return end
	}
	if bytes.HasSuffix(text, []byte(":")) {
		return len(text) - 1
	}
	return -1
}

// quoteEnd returns the position after the quoted text with which a text begins; -1 if it does not end.
func quoteEnd(text []byte) int {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return -1
}

// field reads the value of a field whose key is at a column. value is the rest of the line.
func (f *flat) field(column int, path string, value []byte, parent, depth int) {
	first := f.next
	f.next++
	switch {
	case len(value) > 0:
		f.skipNested(column)
		f.add(entry{path: path, parent: parent, value: f.text(value, first)})
	case f.next < len(f.lines) && isItem(f.lines[f.next], column):
		f.list(column, path, parent, depth)
	case depth < maxFlattened:
		f.mapping(column+indentStep, path, f.add(entry{path: path, parent: parent, kind: aMap}), depth+1)
	default:
		f.skipNested(column)
		f.add(entry{path: path, parent: parent, value: f.text(nil, first)})
	}
}

// skipNested skips the lines to the right of a column.
func (f *flat) skipNested(column int) {
	for f.next < len(f.lines) && isNestedBelow(f.lines[f.next], column) {
		f.next++
	}
}

// text returns the value of a field: the rest of its line, and the lines after it up to the next one to be read.
func (f *flat) text(value []byte, first int) []byte {
	if f.next == first+1 {
		return value
	}
	return append(append(bytes.Clone(value), '\n'), bytes.Join(f.lines[first+1:f.next], []byte("\n"))...)
}

func isItem(line []byte, column int) bool {
	return indentation(line) == column && len(line) > column && line[column] == '-' && (len(line) == column+1 || line[column+1] == ' ')
}

// list reads a list whose dashes are at a column. Without names it is one field.
func (f *flat) list(column int, path string, parent, depth int) {
	start := f.next
	names := f.names(column)
	if names == nil || depth >= maxFlattened {
		for f.next < len(f.lines) && (isItem(f.lines[f.next], column) || isNestedBelow(f.lines[f.next], column)) {
			f.next++
		}
		f.add(entry{path: path, parent: parent, value: bytes.Join(f.lines[start:f.next], []byte("\n"))})
		return
	}
	at := f.add(entry{path: path, parent: parent, kind: aList, names: names})
	for _, name := range names {
		if f.tooLarge() {
			return
		}
		item := path + keyStep(name)
		// The dash becomes indentation, so that the item is a map.
		line := bytes.Clone(f.lines[f.next])
		line[column] = ' '
		f.lines[f.next] = line
		f.mapping(column+indentStep, item, f.add(entry{path: item, parent: at, kind: aMap}), depth+1)
		f.skipNested(column)
	}
}

// names returns the names of the items of the list that is read next; nil if one has no name, or two have the same.
func (f *flat) names(column int) []string {
	var names []string
	seen := map[string]bool{}
	for i := f.next; i < len(f.lines) && isItem(f.lines[i], column); {
		name, next, ok := f.name(i, column)
		if !ok || seen[name] {
			return nil
		}
		seen[name] = true
		names, i = append(names, name), next
	}
	return names
}

// name returns the field name of the list item that begins at a line, and the line after the item.
func (f *flat) name(first, column int) (name string, next int, ok bool) {
	for next = first; next < len(f.lines) && (next == first || isNestedBelow(f.lines[next], column)); next++ {
		line := f.lines[next]
		if len(line) <= column+indentStep || next > first && indentation(line) != column+indentStep {
			continue
		}
		if value, found := bytes.CutPrefix(line[column+indentStep:], []byte("name: ")); found && len(value) > 0 && !strings.ContainsRune("|{[", rune(value[0])) {
			name, ok = unquoted(value), true
		}
	}
	return name, next, ok
}

// stepOf returns the step of a path to the field of a map.
func stepOf(key string) string {
	if isSimple(key) {
		return "/" + key
	}
	return fieldpath.Path{{Field: key}}.String()
}

// keyStep returns the step of a path to the list item with a name.
func keyStep(name string) string {
	if isSimple(name) {
		return "[name=" + name + "]"
	}
	return fieldpath.Path{{Keys: []fieldpath.Key{{Name: "name", Text: name}}}}.String()
}

// isSimple reports whether a text is written in a path as it is.
func isSimple(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return text != ""
}

// unescaped is the reverse of encoder.escaped.
func unescaped(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		i++
		switch text[i] {
		case 'n':
			out.WriteByte('\n')
		case 'r':
			out.WriteByte('\r')
		case 't':
			out.WriteByte('\t')
		case 'x':
			i += writeCode(&out, text[i+1:], 2)
		case 'u':
			i += writeCode(&out, text[i+1:], 4)
		default:
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// writeCode writes the character with the code of some digits, and returns their number.
func writeCode(out *strings.Builder, text string, digits int) int {
	if len(text) < digits {
		return 0
	}
	code, err := strconv.ParseUint(text[:digits], 16, 32)
	if err != nil {
		code = utf8.RuneError
	}
	out.WriteRune(rune(code))
	return digits
}
