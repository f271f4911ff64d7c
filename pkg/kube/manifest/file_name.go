// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// File names consist of ASCII letters, digits and "-._@+=". Every other byte of an object's name becomes a percent sign
// and two hexadecimal digits, and so does a first byte with which the name would mean something to a file system. That
// leaves nothing to Unicode normalization, and names that differ only in the case of ASCII letters as the one way for
// two files to be taken for one. A name with an upper-case letter therefore gets a mark and a hash of the name.
const (
	fileSuffix = ".yaml"
	hashMark   = "~"
	// hashLength is the number of characters of the hash: 80 bits, so that nobody finds two names that share one.
	hashLength = 16
	// longestSegment is the length in bytes that file systems allow one segment of a path.
	longestSegment = 255
	escapeLength   = len("%00")
)

// hashAlphabet has no upper-case letters.
var hashAlphabet = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// fileName returns the name of the file of an object.
func fileName(name string) (string, error) {
	if err := validateName(name); err != nil {
		return "", err
	}
	stem := escapeName(name)
	if !hasUpper(name) && len(stem)+len(fileSuffix) <= longestSegment {
		return stem + fileSuffix, nil
	}
	stem = cutEscaped(stem, longestSegment-len(hashMark)-hashLength-len(fileSuffix))
	return stem + hashMark + hashOfName(name) + fileSuffix, nil
}

// validateName refuses names that the API refuses for every type, and control characters.
func validateName(name string) error {
	switch {
	case name == "":
		return errors.New("an object without a name has no path")
	case name == ".", name == "..":
		return fmt.Errorf("the name %q is a step in a path", name)
	case strings.Contains(name, "/"):
		return fmt.Errorf("the name %q holds a slash", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name %q holds a control character", name)
	}
	return nil
}

func hashOfName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hashAlphabet.EncodeToString(sum[:])[:hashLength]
}

// cutEscaped returns as much of an escaped name as fits, never half an escape.
func cutEscaped(stem string, longest int) string {
	if len(stem) <= longest {
		return stem
	}
	stem = stem[:longest]
	if at := strings.LastIndexByte(stem, '%'); at >= 0 && at > longest-escapeLength {
		stem = stem[:at]
	}
	return stem
}

// isFileName says whether fileName makes this name for some object.
func isFileName(file string) bool {
	stem, found := strings.CutSuffix(file, fileSuffix)
	if !found || len(file) > longestSegment {
		return false
	}
	stem, hash, hashed := strings.Cut(stem, hashMark)
	name, ok := unescapeName(stem)
	if !ok {
		return false
	}
	if !hashed {
		return validateName(name) == nil && !hasUpper(name)
	}
	if hash == hashOfName(name) {
		return validateName(name) == nil && hasUpper(name)
	}
	return isCut(file, hash)
}

// isCut says whether a file name whose hash is not that of its stem can be one that was cut for length.
func isCut(file, hash string) bool {
	return len(file) > longestSegment-escapeLength && len(hash) == hashLength &&
		strings.Trim(hash, "0123456789abcdefghijklmnopqrstuv") == ""
}

// escapeName returns a name in the characters that file names consist of.
func escapeName(name string) string {
	first := needsEscapeAtStart(name)
	if !first && !strings.ContainsFunc(name, isNotFileChar) {
		return name
	}
	var escaped strings.Builder
	for i := range len(name) {
		if char := name[i]; isNotFileChar(rune(char)) || i == 0 && first {
			fmt.Fprintf(&escaped, "%%%02X", char)
		} else {
			escaped.WriteByte(char)
		}
	}
	return escaped.String()
}

// unescapeName returns the name that escapeName makes this of, if there is one.
func unescapeName(escaped string) (string, bool) {
	head, rest, found := strings.Cut(escaped, "%")
	name := []byte(head)
	for found {
		if len(rest) < len("00") {
			return "", false
		}
		char, err := hex.DecodeString(rest[:len("00")])
		if err != nil {
			return "", false
		}
		head, rest, found = strings.Cut(rest[len("00"):], "%")
		name = append(append(name, char...), head...)
	}
	return string(name), escapeName(string(name)) == escaped
}

func isNotFileChar(char rune) bool {
	switch {
	case char >= 'a' && char <= 'z', char >= 'A' && char <= 'Z', char >= '0' && char <= '9':
		return false
	}
	return !strings.ContainsRune("-._@+=", char)
}

func hasUpper(name string) bool {
	return strings.ContainsFunc(name, func(char rune) bool { return char >= 'A' && char <= 'Z' })
}

// needsEscapeAtStart says whether a name would hide its file or, on Windows, name a device. No device is named by a stem
// of which something is escaped.
func needsEscapeAtStart(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, ".") || gitname.IsDevice(name) && !strings.ContainsFunc(stem, isNotFileChar)
}
