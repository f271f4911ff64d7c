// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// encode writes an object as one YAML document in block style: two spaces of indentation, list items at the column of
// their key. Keys are sorted by their bytes, except for the few that lead an object and its metadata.
func encode(object map[string]any) ([]byte, error) {
	e := encoder{out: make([]byte, 0, initialSize)}
	if err := e.mapping(object, 0, rootOrder); err != nil {
		return nil, err
	}
	if e.unappliable {
		return append([]byte(unappliable), e.out...), nil
	}
	return e.out, nil
}

// unappliable is the first line of a file with characters that server-side apply cannot carry in any notation: kubectl
// sends them unescaped as JSON, and the API server reads that as YAML. It rejects all of them except U+0085, which it
// reads as a line end and replaces by a blank.
const unappliable = "# Apply this file without --server-side, which refuses or changes some of its characters (U+007F to U+009F, " +
	"U+FFFE, U+FFFF).\n"

// IsAppliable reports whether server-side apply restores a file written by Render unchanged. If not, the first line of
// the file says so.
func IsAppliable(file []byte) bool { return !bytes.HasPrefix(file, []byte(unappliable)) }

// isAppliable reports whether server-side apply carries a character unchanged.
func isAppliable(char rune) bool {
	return (char < 0x7f || char > 0x9f) && char != 0xfffe && char != 0xffff
}

const (
	// initialSize is the initial size of the buffer in bytes. Most objects of a cluster fit into it.
	initialSize = 2048
	// indentStep is the number of spaces by which a nested value is indented.
	indentStep = 2
	// longestImplicitKey is the maximum length in bytes of a key without an explicit mark. Parsers search for the colon
	// no further than 1024 characters.
	longestImplicitKey = 512
)

// rootOrder and metadataOrder are the keys that lead an object and its metadata.
var (
	rootOrder     = []string{"apiVersion", "kind", "metadata"}
	metadataOrder = []string{"name", "namespace", "labels", "annotations"}
)

// encoder appends YAML to out. Its methods leave the output at the beginning of a line.
type encoder struct {
	out []byte
	// keys is a stack: each mapping pushes its keys, sorts them, and pops them when it is written.
	keys []string
	// unappliable is set once a character is written that server-side apply cannot carry.
	unappliable bool
}

// mapping writes fields at a column, first the given keys, then the others in order.
func (e *encoder) mapping(fields map[string]any, column int, first []string) error {
	bottom := len(e.keys)
	e.keys = appendKeys(e.keys, fields, first)
	for _, key := range e.keys[bottom:] {
		if err := e.entry(key, fields[key], column); err != nil {
			return err
		}
	}
	e.keys = e.keys[:bottom]
	return nil
}

// appendKeys appends the keys of a mapping in the order in which they are written.
func appendKeys(keys []string, fields map[string]any, first []string) []string {
	for _, key := range first {
		if _, present := fields[key]; present {
			keys = append(keys, key)
		}
	}
	rest := len(keys)
	for key := range fields {
		if !slices.Contains(first, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys[rest:])
	return keys
}

// orderOf returns the keys that lead the mapping at the given key.
func orderOf(key string, atRoot bool) []string {
	if atRoot && key == "metadata" {
		return metadataOrder
	}
	return nil
}

// entry writes one key of a mapping and its value.
func (e *encoder) entry(key string, value any, column int) error {
	if err := e.key(key, column); err != nil {
		return err
	}
	if err := e.entryValue(key, value, column); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (e *encoder) entryValue(key string, value any, column int) error {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			break
		}
		e.out = append(e.out, '\n')
		return e.mapping(value, column+indentStep, orderOf(key, column == 0))
	case []any:
		if len(value) == 0 {
			break
		}
		e.out = append(e.out, '\n')
		return e.sequence(value, column)
	}
	return e.scalar(value, column)
}

// sequence writes a list with its dashes at a column.
func (e *encoder) sequence(items []any, column int) error {
	for i, item := range items {
		e.indent(column)
		e.out = append(e.out, '-')
		if err := e.item(item, column); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}

// item writes a list item; a mapping or a list begins on the line of its dash.
func (e *encoder) item(item any, column int) error {
	switch item := item.(type) {
	case map[string]any:
		if len(item) == 0 {
			break
		}
		e.out = append(e.out, ' ')
		return e.mapping(item, column+indentStep, nil)
	case []any:
		if len(item) == 0 {
			break
		}
		e.out = append(e.out, ' ')
		return e.sequence(item, column+indentStep)
	}
	return e.scalar(item, column)
}

// key writes a key and its colon. A long one takes the explicit form, with a question mark.
func (e *encoder) key(key string, column int) error {
	e.indent(column)
	start := len(e.out)
	if err := e.line(key, styleOf(key)); err != nil {
		return err
	}
	if len(e.out)-start > longestImplicitKey {
		e.out = slices.Insert(e.out, start, '?', ' ')
		e.out = append(e.out, '\n')
		e.indent(column)
	}
	e.out = append(e.out, ':')
	return nil
}

// scalar writes a space and a value that is neither a filled mapping nor a filled list. The column is that of the key
// or dash before it.
func (e *encoder) scalar(value any, column int) error {
	e.out = append(e.out, ' ')
	switch value := value.(type) {
	case string:
		return e.text(value, column)
	case nil:
		e.out = append(e.out, "null"...)
	case bool:
		e.out = strconv.AppendBool(e.out, value)
	case int64:
		e.out = strconv.AppendInt(e.out, value, 10)
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return fmt.Errorf("%v is no JSON number", value)
		}
		e.out = appendFloat(e.out, value)
	case map[string]any:
		e.out = append(e.out, "{}"...)
	case []any:
		e.out = append(e.out, "[]"...)
	default:
		return fmt.Errorf("a value of Go type %T cannot be written", value)
	}
	e.out = append(e.out, '\n')
	return nil
}

// indent moves to a column, unless something stands on the line already.
func (e *encoder) indent(column int) {
	if len(e.out) > 0 && e.out[len(e.out)-1] != '\n' {
		return
	}
	for range column {
		e.out = append(e.out, ' ')
	}
}
