// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

func TestLine(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":                        {"shop/web", "shop/web"},
		"empty":                        {"", ""},
		"other scripts":                {"é 日本　太郎 Ωμέγα שלום مرحبا", "é 日本　太郎 Ωμέγα שלום مرحبا"},
		"marks":                        {"e\u0301 ก็", "e\u0301 ก็"},
		"a backslash":                  {`corp\jane`, `corp\jane`},
		"right to left override":       {"a\u202egpj.b", `a\u202egpj.b`},
		"isolates and marks":           {"\u2066a\u2069\u200e\u200f\u061c", `\u2066a\u2069\u200e\u200f\u061c`},
		"zero width":                   {"a\u200bb\ufeffc\u2060d\u00ade", `a\u200bb\ufeffc\u2060d\u00ade`},
		"line ends":                    {"a\r\nb\u2028c\u2029d\u0085e\x0bf", `a\u000d\u000ab\u2028c\u2029d\u0085e\u000bf`},
		"controls":                     {"\x00\x1b[31m\x7f\t", `\u0000\u001b[31m\u007f\u0009`},
		"tag characters":               {"a\U000e0041\U000e007f", `a\U000e0041\U000e007f`},
		"variation selectors":          {"a\ufe00\ufe0f\U000e0100", `a\ufe00\ufe0f\U000e0100`},
		"fillers and blanks":           {"\u115f\u3164\uffa0\u034f\u2800\u2003", `\u115f\u3164\uffa0\u034f\u2800\u2003`},
		"private use and noncharacter": {"\ue000\ufdd0\U0010ffff", `\ue000\ufdd0\U0010ffff`},
		"not UTF-8":                    {"a\xffb", "a\ufffdb"},
		"the replacement character":    {"a\ufffdb", "a\ufffdb"},
		"emoji":                        {"🦀 👩‍👩‍👧 ❤️‍🔥 👍🏽 🏳️‍🌈", "🦀 👩‍👩‍👧 ❤️‍🔥 👍🏽 🏳️‍🌈"},
		"a joiner between letters":     {"ad\u200dmin ad\u200cmin", `ad\u200dmin ad\u200cmin`},
		"a joiner after an emoji":      {"🦀\u200da \u200d🦀", `🦀\u200da \u200d🦀`},
		"joined scripts":               {"می\u200cخواهم क्\u200dष", "می\u200cخواهم क्\u200dष"},
		"a joiner at their end":        {"می\u200c می\u200c\u200cخ", `می\u200c می\u200c\u200cخ`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printable.Line(test.text); got != test.want {
				t.Errorf("Line(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	if got, want := printable.Text("a\n\tb\u202e\r\n"), "a\n\tb\\u202e\\u000d\n"; got != want {
		t.Errorf("Text() = %q, want %q", got, want)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\u202eb\u200d🦀\ufe0f")
	f.Add("می\u200cخ\xff\n")
	f.Fuzz(func(t *testing.T, text string) {
		line := printable.Line(text)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(char rune) bool {
			return unicode.IsControl(char) || unicode.In(char, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Co)
		}) {
			t.Errorf("Line(%q) = %q", text, line)
		}
		if again := printable.Line(line); again != line {
			t.Errorf("Line(%q) = %q, and of that %q", text, line, again)
		}
	})
}

func TestBlanks(t *testing.T) {
	for _, char := range "\U00013441\U00013442\U0001d159\U00016fe4\u2d7f\U0001107f\ufffc" {
		if got := printable.Line("a" + string(char) + "b"); len(got) < len(`a\u0000b`) {
			t.Errorf("%U is shown as %q", char, got)
		}
	}
}

func TestMessage(t *testing.T) {
	for name, test := range map[string]struct {
		text, wants string
	}{
		"short":             {"a\u202eb\n", `a\u202eb` + "\n"},
		"escapes too long":  {strings.Repeat("\u202e", 10000), strings.Repeat(`\u202e`, 6000)[:32768]},
		"cut in a letter":   {"a" + strings.Repeat("é", 20000), "a" + strings.Repeat("é", 16383)},
		"as long as may be": {strings.Repeat("a", 32768), strings.Repeat("a", 32768)},
	} {
		t.Run(name, func(t *testing.T) {
			got := printable.Message(test.text)
			if len(got) > 32768 || !utf8.ValidString(got) || got != test.wants {
				t.Errorf("%d bytes: %.100q", len(got), got)
			}
		})
	}
}
