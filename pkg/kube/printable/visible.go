// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable writes text that others have chosen, such as the names of objects and users, so that a reader sees all
// that is in it.
//
// A character that cannot be seen, that turns the direction of the text around it, or that ends a line becomes an escape
// such as \u202e. Letters, marks, numbers, punctuation and symbols of all scripts stay as they are.
package printable

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
	// emojiStyle asks for the coloured form of the symbol before it.
	emojiStyle = '\ufe0f'
	// brailleBlank is a symbol without a dot.
	brailleBlank = '\u2800'
	noBreakSpace = '\u00a0'
	// wideSpace is the space of Chinese and Japanese text.
	wideSpace = '\u3000'
)

// Line returns a text as one line: line ends and tabs are escaped as well.
func Line(text string) string {
	return escape(text, "")
}

// Text returns a text with its lines and tabs.
func Text(text string) string {
	return escape(text, "\n\t")
}

// messageLimit is how long the API lets the message of a condition be, in bytes.
const messageLimit = 32768

// Message returns a text with its lines and tabs, cut to what the message of a condition may hold: escapes are longer than what they
// stand for.
func Message(text string) string {
	if text = Text(text); len(text) > messageLimit {
		return strings.ToValidUTF8(text[:messageLimit], "")
	}
	return text
}

// escape writes every character that is not seen as an escape, less those to keep. It changes nothing that it has written.
func escape(text, keep string) string {
	if isASCII(text, keep) {
		return text
	}
	var out strings.Builder
	before := utf8.RuneError // what stands there does not join
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		at += size
		if char == utf8.RuneError && size == 1 {
			out.WriteRune(utf8.RuneError)
			before = utf8.RuneError
			continue
		}
		after, _ := utf8.DecodeRuneInString(text[at:])
		if isSeen(char) || strings.ContainsRune(keep, char) || joins(before, char, after) {
			out.WriteRune(char)
		} else {
			writeEscape(&out, char)
		}
		before = char
	}
	return out.String()
}

// isASCII reports whether a text needs no look at its characters.
func isASCII(text, keep string) bool {
	for i := range len(text) {
		if char := text[i]; (char < ' ' || char > '~') && strings.IndexByte(keep, char) < 0 {
			return false
		}
	}
	return true
}

func writeEscape(out *strings.Builder, char rune) {
	const longest = 0xffff
	if char <= longest {
		fmt.Fprintf(out, `\u%04x`, char)
		return
	}
	fmt.Fprintf(out, `\U%08x`, char)
}

// blanks are letters and symbols that Unicode counts as seen and fonts show as nothing: Egyptian blanks, a notehead, a filler
// of Khitan, joiners of Tifinagh and Brahmi, and the place of an object that is not in the text.
var blanks = []rune{'\U00013441', '\U00013442', '\U0001d159', '\U00016fe4', '\u2d7f', '\U0001107f', '\ufffc'}

// isSeen reports whether a character leaves a mark of its own, or is one of the usual spaces.
func isSeen(char rune) bool {
	switch {
	case char == ' ', char == noBreakSpace, char == wideSpace:
		return true
	case char == brailleBlank, slices.Contains(blanks, char), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, char), unicode.Is(unicode.Variation_Selector, char):
		return false
	}
	return unicode.In(char, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Prepended_Concatenation_Mark)
}

// joins reports whether a character that is not seen shapes its neighbours as it is meant to: within an emoji that is made
// of several, after a symbol that has a coloured form, or between the letters of a script in which letters join.
func joins(before, char, after rune) bool {
	switch char {
	case emojiStyle:
		return isSymbol(before)
	case zeroWidthJoiner:
		return (isSymbol(before) || before == emojiStyle) && isSymbol(after) || unicode.In(before, joining...) && unicode.In(after, joining...)
	case zeroWidthNonJoiner:
		return unicode.In(before, joining...) && unicode.In(after, joining...)
	}
	return false
}

// isSymbol reports whether a character is one of those that emoji are made of: symbols, and modifiers of the colour of skin.
func isSymbol(char rune) bool {
	return unicode.Is(unicode.So, char) || char >= '\U0001f3fb' && char <= '\U0001f3ff'
}

// joining are the scripts in which a joiner makes another word.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Tibetan,
}
