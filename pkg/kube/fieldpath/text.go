// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// ErrSyntax is returned for a malformed path and describes the syntax.
var ErrSyntax = errors.New("must be a JSON pointer such as /spec/replicas or /spec/containers[name=web]/image, with ~1 for / and ~0 for ~")

// These characters end an unquoted name or value.
const (
	segmentEnds = "/[]"
	nameEnds    = "=[],"
	textEnds    = "[],"
)

var (
	escapes   = strings.NewReplacer("~", "~0", "/", "~1")
	unescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// String formats a path such that Parse returns the same path.
func (p Path) String() string {
	var out strings.Builder
	for _, s := range p {
		switch {
		case s.IsValue:
			out.WriteString("[=" + quote(s.Field, textEnds) + "]")
		case s.Keys != nil:
			out.WriteString("[" + keysText(s.Keys) + "]")
		default:
			out.WriteString("/" + segment(s.Field))
		}
	}
	return out.String()
}

func keysText(keys []Key) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		name := quote(k.Name, nameEnds)
		if name == "" {
			name = strconv.Quote(name)
		}
		parts[i] = name + "=" + quote(k.Text, textEnds)
	}
	return strings.Join(parts, ",")
}

func segment(field string) string {
	if field == "" {
		return strconv.Quote(field)
	}
	escaped := escapes.Replace(field)
	if quoted := quote(escaped, "[]"); quoted != escaped {
		return strconv.Quote(field)
	}
	return escaped
}

// quote quotes a text that Parse would not read as it is.
func quote(text, ends string) string {
	if strings.HasPrefix(text, `"`) || strings.ContainsAny(text, ends) || strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// Parse parses a path, which must not be empty.
func Parse(text string) (Path, error) {
	var p Path
	for r := (reader{text}); r.rest != ""; {
		field, err := r.segment()
		if err != nil {
			return nil, err
		}
		p = append(p, Step{Field: field})
		if !r.skip("[") {
			continue
		}
		item, err := r.item()
		if err != nil {
			return nil, err
		}
		p = append(p, item)
	}
	if len(p) == 0 {
		return nil, ErrSyntax
	}
	return p, nil
}

// reader consumes a path from its beginning to its end.
type reader struct{ rest string }

func (r *reader) skip(prefix string) bool {
	rest, ok := strings.CutPrefix(r.rest, prefix)
	r.rest = rest
	return ok
}

// token reads a name or value, up to one of the characters that end it if it is not quoted.
func (r *reader) token(ends string) (text string, quoted bool, err error) {
	if prefix, err := strconv.QuotedPrefix(r.rest); err == nil && prefix[0] == '"' {
		r.skip(prefix)
		text, err = strconv.Unquote(prefix)
		return text, true, err
	}
	end := strings.IndexAny(r.rest, ends)
	if end < 0 {
		end = len(r.rest)
	}
	text, r.rest = r.rest[:end], r.rest[end:]
	if strings.HasPrefix(text, `"`) {
		return "", false, ErrSyntax
	}
	return text, false, nil
}

func (r *reader) segment() (string, error) {
	if !r.skip("/") {
		return "", ErrSyntax
	}
	text, quoted, err := r.token(segmentEnds)
	if err != nil || quoted {
		return text, err
	}
	return unescape(text)
}

// unescape decodes a segment of a JSON pointer.
func unescape(segment string) (string, error) {
	if segment == "" {
		return "", ErrSyntax
	}
	for i, part := range strings.Split(segment, "~") {
		if i > 0 && !strings.HasPrefix(part, "0") && !strings.HasPrefix(part, "1") {
			return "", ErrSyntax
		}
	}
	return unescapes.Replace(segment), nil
}

// item reads the selector of a list item after its opening bracket.
func (r *reader) item() (Step, error) {
	if r.skip("=") {
		text, _, err := r.token(textEnds)
		if err != nil || !r.skip("]") {
			return Step{}, ErrSyntax
		}
		return Step{Field: text, IsValue: true}, nil
	}
	var keys []Key
	for {
		k, err := r.key()
		if err != nil {
			return Step{}, err
		}
		keys = append(keys, k)
		if r.skip("]") {
			return Step{Keys: sorted(keys)}, nil
		}
		if !r.skip(",") {
			return Step{}, ErrSyntax
		}
	}
}

func (r *reader) key() (Key, error) {
	name, quoted, err := r.token(nameEnds)
	if err != nil || name == "" && !quoted || !r.skip("=") {
		return Key{}, ErrSyntax
	}
	text, _, err := r.token(textEnds)
	return Key{name, text}, err
}
