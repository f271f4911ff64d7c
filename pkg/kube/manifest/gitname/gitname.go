// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitname

import (
	"strings"
	"unicode/utf8"
)

// own is a name that Git reserves, with the short names that NTFS derives from it.
type own struct {
	name string
	// short is the first six characters of the short names that end in ~1 to ~4.
	short string
	// hashed is the prefix of the short names that NTFS derives once those are taken. ".git" has none, since it is
	// created first.
	hashed string
}

// owns are the names that Git's fsck checks. Git reads .gitmodules and .gitattributes even in a tree that it has only
// fetched, and all of them in a work tree. None of them can be a directory there.
var owns = []own{
	{name: ".gitmodules", short: "gitmod", hashed: "gi7eba"},
	{name: ".gitattributes", short: "gitatt", hashed: "gi7d29"},
	{name: ".gitignore", short: "gitign", hashed: "gi250a"},
	{name: ".mailmap", short: "mailma", hashed: "maba30"},
}

// repository is the directory in which Git stores the repository of a work tree.
const repository = ".git"

// Reserved returns the reserved name that Git or a file system reads a path element as, such as ".git" for "GIT~1 ."
// and ".gitmodules" for "gi7eba~1". It returns an empty string for an element that is not reserved anywhere.
func Reserved(element string) string {
	element = withoutIgnored(element)
	// Windows reads a backslash as a separator, and Git checks what follows it.
	for part := range strings.SplitSeq(element, `\`) {
		// A colon introduces the name of a stream of the same file.
		base, _, _ := strings.Cut(part, ":")
		base = lower(strings.TrimRight(base, ". "))
		if base == repository || base == "git~1" {
			return repository
		}
		for _, own := range owns {
			if base == own.name || own.shortens(base) {
				return own.name
			}
		}
	}
	return ""
}

// shortens reports whether base, in lower case, is an NTFS short name of o.
func (o own) shortens(base string) bool {
	stem, number, found := strings.Cut(base, "~")
	if !found {
		return false
	}
	if stem == o.short && len(number) == 1 && number[0] >= '1' && number[0] <= '4' {
		return true
	}
	// Stem, tilde and number have eight characters together, so a longer number shortens the stem.
	const shortLength = 8
	return len(base) == shortLength && strings.HasPrefix(o.hashed, stem) && number[0] != '0' && strings.Trim(number, "0123456789") == ""
}

// withoutIgnored returns a name as HFS+ compares it: without the code points that HFS+ ignores.
func withoutIgnored(name string) string {
	return strings.Map(func(char rune) rune {
		switch {
		case char >= 0x200c && char <= 0x200f, char >= 0x202a && char <= 0x202e, char >= 0x206a && char <= 0x206f, char == 0xfeff:
			return -1
		}
		return char
	}, name)
}

// lower returns a name with its ASCII letters in lower case. Git's names have no other letters.
func lower(name string) string {
	return strings.Map(func(char rune) rune {
		if char >= 'A' && char <= 'Z' {
			return char + ('a' - 'A')
		}
		return char
	}, name)
}

// IsDevice reports whether Windows opens a device for a path element, ignoring its extension and blanks before that.
// Git does not check out such a name there.
func IsDevice(element string) bool {
	stem, _, _ := strings.Cut(lower(element), ".")
	stem, _, _ = strings.Cut(stem, ":")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	number, found := strings.CutPrefix(stem, "com")
	if !found {
		number, found = strings.CutPrefix(stem, "lpt")
	}
	digit, size := utf8.DecodeRuneInString(number)
	return found && size == len(number) && strings.ContainsRune("0123456789¹²³", digit)
}
