// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable escapes untrusted text, such as the names of objects and users, so that all of it is visible.
//
// A character that is invisible, changes the direction of the surrounding text, or ends a line is written as an escape
// such as \u202e. Letters, marks, numbers, punctuation and symbols of all scripts are unchanged.
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
	// emojiStyle selects the coloured form of the preceding symbol.
	emojiStyle = '\ufe0f'
	// brailleBlank is the braille pattern without dots.
	brailleBlank = '\u2800'
	noBreakSpace = '\u00a0'
	// wideSpace is the space of Chinese and Japanese text.
	wideSpace = '\u3000'
)

// Line returns a text as one line, with line ends and tabs escaped.
func Line(text string) string {
	return escape(text, "")
}

// Text returns a text with its line ends and tabs unescaped.
func Text(text string) string {
	return escape(text, "\n\t")
}

// messageLimit is the API's limit for the message of a condition in bytes.
const messageLimit = 32768

// Message returns Text truncated to the limit of a condition's message: escapes are longer than what they replace.
func Message(text string) string {
	if text = Text(text); len(text) > messageLimit {
		return strings.ToValidUTF8(text[:messageLimit], "")
	}
	return text
}

// escape escapes every invisible character that is not in keep. It is idempotent.
func escape(text, keep string) string {
	if isASCII(text, keep) {
		return text
	}
	var out strings.Builder
	before := utf8.RuneError // never joins
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRuneInString(text[at:])
		at += size
		if char == utf8.RuneError && size == 1 {
			out.WriteRune(utf8.RuneError)
			before = utf8.RuneError
			continue
		}
		after, _ := utf8.DecodeRuneInString(text[at:])
		if isVisible(char) || strings.ContainsRune(keep, char) || joins(before, char, after) {
			out.WriteRune(char)
		} else {
			writeEscape(&out, char)
		}
		before = char
	}
	return out.String()
}

// isASCII reports whether a text consists of printable ASCII and of characters to keep.
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

// blanks are letters and symbols that are visible by their Unicode category but have an empty glyph: Egyptian blanks, a
// notehead, a Khitan filler, joiners of Tifinagh and Brahmi, and the object replacement character.
var blanks = []rune{'\U00013441', '\U00013442', '\U0001d159', '\U00016fe4', '\u2d7f', '\U0001107f', '\ufffc'}

// isVisible reports whether a character has a glyph or is one of the usual spaces.
func isVisible(char rune) bool {
	switch {
	case char == ' ', char == noBreakSpace, char == wideSpace:
		return true
	case char == brailleBlank, slices.Contains(blanks, char), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, char),
		unicode.Is(unicode.Variation_Selector, char):
		return false
	}
	return unicode.In(char, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Prepended_Concatenation_Mark)
}

// joins reports whether an invisible character shapes its neighbours as intended: within an emoji of several
// characters, after a symbol with a coloured form, or between the letters of a script with joining letters.
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

// isSymbol reports whether a character can be part of an emoji: a symbol or a skin tone modifier.
func isSymbol(char rune) bool {
	return unicode.Is(unicode.So, char) || char >= '\U0001f3fb' && char <= '\U0001f3ff'
}

// joining are the scripts in which a joiner changes the meaning of a word.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Tibetan,
}
