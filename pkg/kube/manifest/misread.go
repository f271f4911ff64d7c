// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// longestWord is the length of the longest word that is no string in YAML ("false").
const longestWord = 5

// isMisread reports whether a parser of YAML 1.1 or 1.2 would read an unquoted text as something other than a string.
// In doubt it reports true: by the letter of YAML 1.1, "1.25.3" is a number.
func isMisread(text string) bool {
	if len(text) <= longestWord {
		switch strings.ToLower(text) {
		case "", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<":
			return true
		}
	}
	switch char := text[0]; {
	case char >= '0' && char <= '9':
		return isNumeric(text) || isDated(text)
	case char == '+' || char == '-' || char == '.':
		return isNumeric(strings.TrimLeft(text, "+-"))
	}
	return false
}

// isNumeric reports whether a text without its sign reads as a number in any notation: decimal, hexadecimal, octal,
// binary, with underscores, sexagesimal ("12:30"), with an exponent, infinite or not a number.
func isNumeric(text string) bool {
	switch strings.ToLower(text) {
	case "":
		return false
	case ".inf", ".nan":
		return true
	}
	if digits, found := cutBase(text); found {
		return containsOnly(digits, "0123456789abcdefABCDEF_")
	}
	mantissa := strings.TrimLeft(text, "0123456789_.:,")
	if mantissa == text {
		return false
	}
	if mantissa == "" {
		return true
	}
	exponent, found := strings.CutPrefix(strings.ToLower(mantissa), "e")
	exponent = strings.TrimLeft(exponent, "+-")
	return found && containsOnly(exponent, "0123456789_")
}

// cutBase removes the prefix of a hexadecimal, octal or binary number.
func cutBase(text string) (digits string, found bool) {
	if len(text) < len("0x0") || text[0] != '0' {
		return "", false
	}
	switch text[1] {
	case 'x', 'X', 'o', 'O', 'b', 'B':
		return text[2:], true
	}
	return "", false
}

// isDated reports whether a text begins with a date ("2024-01-31") and is therefore a timestamp.
func isDated(text string) bool {
	const yearLength = 4
	year, rest, _ := strings.Cut(text, "-")
	month, rest, _ := strings.Cut(rest, "-")
	if len(year) != yearLength || !isShortNumber(month) || !containsOnly(year, "0123456789") {
		return false
	}
	day, _, _ := strings.Cut(rest, " ")
	day, _, _ = strings.Cut(strings.ToLower(day), "t")
	return isShortNumber(day)
}

func isShortNumber(text string) bool {
	return len(text) >= 1 && len(text) <= 2 && containsOnly(text, "0123456789")
}

func containsOnly(text, chars string) bool {
	return strings.Trim(text, chars) == ""
}
