// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strconv"
	"unicode/utf8"

	"golang.org/x/term"
)

// DefaultWidth is the width of output in characters that is no terminal, unless COLUMNS is set.
const DefaultWidth = 100

// Colour is the escape sequence of a colour.
type Colour string

// Colours of single words and lines.
const (
	Bold  Colour = bold
	Red   Colour = red
	Green Colour = green
	Cyan  Colour = cyan
)

// HasColours reports whether a stream shows colours: it is a terminal, and NO_COLOR is not set.
func HasColours(stream any) bool { return IsTerminal(stream) && os.Getenv("NO_COLOR") == "" }

// Paint returns a text in a colour, if colours are wanted.
func (c Colour) Paint(text string, wanted bool) string {
	if !wanted || text == "" || c == "" {
		return text
	}
	return string(c) + text + reset
}

// Width returns the width of a stream in characters: COLUMNS if it is set, or else that of the terminal, or else DefaultWidth.
func Width(stream any) int {
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if width, _ := sizeOf(stream); width > 0 {
		return width
	}
	return DefaultWidth
}

// Height returns the number of lines of a terminal, 0 if the stream is none.
func Height(stream any) int {
	_, height := sizeOf(stream)
	return height
}

// sizeOf returns the size of a terminal, zeros if the stream is none.
func sizeOf(stream any) (width, height int) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

// Shorten cuts a text to a number of characters, with dots at the end.
func Shorten(text string, most int) string {
	const dots = "..."
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	runes := []rune(text)
	if most <= len(dots) {
		return string(runes[:max(0, most)])
	}
	return string(runes[:most-len(dots)]) + dots
}
