// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxBaseFolderLength leaves most of the 4096 bytes that systems allow a path for what comes below.
	maxBaseFolderLength = 512
	// maxSegmentLength is what common file systems allow a file name, in bytes.
	maxSegmentLength = 255
)

func validateBaseFolder(folder string, fldPath *field.Path) field.ErrorList {
	if folder == "" {
		return nil
	}
	if detail := refusedFolder(folder); detail != "" {
		return field.ErrorList{field.Invalid(fldPath, folder, detail)}
	}
	for segment := range strings.SplitSeq(folder, "/") {
		if detail := refusedSegment(segment); detail != "" {
			return field.ErrorList{field.Invalid(fldPath, folder, detail)}
		}
	}
	return nil
}

func refusedFolder(folder string) string {
	switch {
	case len(folder) > maxBaseFolderLength:
		return "must have at most 512 bytes"
	case !utf8.ValidString(folder) || strings.ContainsFunc(folder, isInvisible):
		return "must be UTF-8 without control characters and invisible ones"
	case strings.ContainsAny(folder, `\:*?"<>|`):
		return `must not contain \ : * ? " < > or |, which not every file system admits; folders are separated by /`
	case strings.HasPrefix(folder, "/"):
		return "must be relative to the repository's root, without a leading /"
	case path.Clean(folder) != folder || folder == "." || folder == ".." || strings.HasPrefix(folder, "../"):
		return "must be a clean path such as clusters/production: no . or .. segments, no // and no trailing /"
	}
	return ""
}

func refusedSegment(segment string) string {
	switch name := strings.ToLower(segment); {
	case len(segment) > maxSegmentLength:
		return "must not have a folder name of more than 255 bytes"
	case strings.TrimSpace(segment) != segment || strings.HasSuffix(segment, "."):
		return "must not have a folder name that begins or ends with a space, or ends with ."
	case name == ".git" || name == "git~1":
		return "must not have a folder called .git, which is Git's own"
	case name == ".configbutler":
		return "must not have a folder called .configbutler, which holds the owner's marker"
	}
	return ""
}

// isInvisible holds for control characters and those that only change how others are shown.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}
