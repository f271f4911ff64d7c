// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// style is a notation of a string.
type style int

const (
	plain        style = iota // as it is
	quoted                    // between double quotes, nothing in it needs an escape
	singleQuoted              // between single quotes: it holds double quotes or backslashes
	escaped                   // between double quotes with escapes
	literal                   // a block scalar
)

// styleOf chooses the notation of a string. Block scalars are for texts of several lines that they represent exactly:
// every character is printable, and a line feed is the only line end. A text that begins with a tab is escaped, because
// Kustomize writes block scalars of such texts that it cannot read.
func styleOf(text string) style {
	content := inspect(text)
	switch {
	case content.unprintable, content.tab && !content.lineFeed, strings.HasPrefix(strings.TrimLeft(text, "\n"), "\t"):
		return escaped
	case content.lineFeed:
		return literal
	case !content.indicator && isPlainAtEnds(text) && !isMisread(text):
		return plain
	case content.escapable:
		return singleQuoted
	}
	return quoted
}

// content describes a string as far as its style depends on it.
type content struct {
	unprintable bool // a character that YAML wants escaped, or a line end other than line feed
	lineFeed    bool
	tab         bool
	escapable   bool // a double quote or a backslash
	indicator   bool // a colon or a number sign where it ends a plain scalar
}

func inspect(text string) content {
	var found content
	for i := 0; i < len(text); i++ {
		switch char := text[i]; {
		case char > ':' && char < 0x7f && char != '\\', char > '#' && char < ':', char == ' ':
			// The common case comes first, since a text can have a megabyte.
		case char == '\n':
			found.lineFeed = true
		case char == '\t':
			found.tab = true
		case char == '"' || char == '\\':
			found.escapable = true
		case char == ':':
			found.indicator = found.indicator || i+1 == len(text) || text[i+1] == ' '
		case char == '#':
			found.indicator = found.indicator || i > 0 && text[i-1] == ' '
		case char >= utf8.RuneSelf:
			decoded, size := utf8.DecodeRuneInString(text[i:])
			found.unprintable = found.unprintable || !isPrintable(decoded, size)
			i += size - 1
		case char < ' ' || char == 0x7f:
			found.unprintable = true
		}
	}
	return found
}

// isPrintable reports whether a non-ASCII character can be written unescaped. The line ends of YAML 1.1 (U+0085,
// U+2028, U+2029) and the byte order mark cannot.
func isPrintable(char rune, size int) bool {
	switch {
	case char == utf8.RuneError && size == 1:
		return false
	case char < 0xa0, char == 0x2028, char == 0x2029, char == 0xfeff, char == 0xfffe, char == 0xffff:
		return false
	}
	return true
}

// isPlainAtEnds reports whether the first and last characters of a text allow it to be unquoted.
func isPlainAtEnds(text string) bool {
	if text == "" || text[len(text)-1] == ' ' {
		return false
	}
	switch text[0] {
	case ' ', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	case '-', '?', ':':
		return len(text) > 1 && text[1] != ' ' && !strings.HasPrefix(text, "---")
	case '.':
		return !strings.HasPrefix(text, "...")
	}
	return true
}

// text appends a string value and ends the line. The column is that of its key or dash.
func (e *encoder) text(text string, column int) error {
	chosen := styleOf(text)
	if chosen == literal {
		e.literal(text, column+indentStep)
		return nil
	}
	if err := e.line(text, chosen); err != nil {
		return err
	}
	e.out = append(e.out, '\n')
	return nil
}

// line appends a string on one line in the given style, or with escapes where the style needs several lines.
func (e *encoder) line(text string, chosen style) error {
	switch chosen {
	case plain:
		e.out = append(e.out, text...)
	case quoted:
		e.out = append(e.out, '"')
		e.out = append(e.out, text...)
		e.out = append(e.out, '"')
	case singleQuoted:
		e.out = append(e.out, '\'')
		e.out = append(e.out, strings.ReplaceAll(text, "'", "''")...)
		e.out = append(e.out, '\'')
	case escaped, literal:
		if !utf8.ValidString(text) {
			return errors.New("a string is not UTF-8")
		}
		e.escaped(text)
	}
	return nil
}

// escaped appends a string in double quotes, with an escape for every character that needs one.
func (e *encoder) escaped(text string) {
	e.out = append(e.out, '"')
	for _, char := range text {
		e.unappliable = e.unappliable || !isAppliable(char)
		switch {
		case char == '"' || char == '\\':
			e.out = append(e.out, '\\', byte(char))
		case char == '\n':
			e.out = append(e.out, `\n`...)
		case char == '\r':
			e.out = append(e.out, `\r`...)
		case char == '\t':
			e.out = append(e.out, `\t`...)
		case char >= ' ' && char < 0x7f, char >= utf8.RuneSelf && isPrintable(char, utf8.RuneLen(char)):
			e.out = utf8.AppendRune(e.out, char)
		case char <= 0xff:
			e.out = fmt.Appendf(e.out, `\x%02X`, char)
		default:
			e.out = fmt.Appendf(e.out, `\u%04X`, char)
		}
	}
	e.out = append(e.out, '"')
}

// literal appends a text as a block scalar whose lines begin at a column. Empty lines get no indentation.
func (e *encoder) literal(text string, column int) {
	e.out = append(e.out, '|')
	switch text[0] {
	case ' ', '\t', '\n':
		// The first line does not determine the indentation.
		e.out = append(e.out, '0'+indentStep)
	}
	body, ended := strings.CutSuffix(text, "\n")
	switch {
	case !ended:
		e.out = append(e.out, '-')
	case body == "" || strings.HasSuffix(body, "\n"):
		e.out = append(e.out, '+')
	}
	e.out = append(e.out, '\n')
	e.out = slices.Grow(e.out, len(text)+column*(strings.Count(text, "\n")+1))
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			e.indent(column)
			e.out = append(e.out, line...)
		}
		e.out = append(e.out, '\n')
	}
}
