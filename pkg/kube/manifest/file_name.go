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
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// File names consist of ASCII letters, digits and "-._@+=". Every other byte of an object's name is replaced by a
// percent sign and two hexadecimal digits, and so is a first byte that has a meaning to a file system. Unicode
// normalization therefore never applies, and two files can only collide by names that differ in the case of ASCII
// letters. A name with an upper-case letter therefore gets a mark and a hash of the name.
const (
	fileSuffix = ".yaml"
	hashMark   = "~"
	// hashLength is the number of characters of the hash. 80 bits make collisions infeasible.
	hashLength = 16
	// longestSegment is the maximum length in bytes of one path segment on common file systems.
	longestSegment = 255
	escapeLength   = len("%00")
)

// hashAlphabet has no upper-case letters.
var hashAlphabet = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// fileName returns the file name for an object's name.
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

// validateName rejects names that the API rejects for every type.
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
	}
	return nil
}

func hashOfName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hashAlphabet.EncodeToString(sum[:])[:hashLength]
}

// cutEscaped truncates an escaped name without splitting an escape.
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

// isFileName reports whether fileName returns this name for some object.
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

// isCut reports whether a file name whose hash is not that of its stem can be a truncated name.
func isCut(file, hash string) bool {
	return len(file) > longestSegment-escapeLength && len(hash) == hashLength &&
		strings.Trim(hash, "0123456789abcdefghijklmnopqrstuv") == ""
}

// escapeName escapes the characters of a name that file names must not contain.
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

// unescapeName reverses escapeName. It returns false if escapeName cannot have returned the text.
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

// needsEscapeAtStart reports whether a name would hide its file or, on Windows, name a device. A stem with an escape in
// it never names a device.
func needsEscapeAtStart(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return strings.HasPrefix(name, ".") || gitname.IsDevice(name) && !strings.ContainsFunc(stem, isNotFileChar)
}
