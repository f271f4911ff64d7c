// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/configbutler/slipstream/pkg/kube/manifest/gitname"
)

// longestBaseFolder is the maximum length of a base folder in bytes. It leaves room for the paths below it, since a
// whole path is limited to 4096 bytes.
const longestBaseFolder = 1024

// CleanBaseFolder returns the canonical form of a base folder: slashes between segments, no trailing slash, empty for
// the root of the repository. It fails on a folder that is absolute, leads upwards, or has a segment that Git reserves
// or that some file systems cannot store.
func CleanBaseFolder(folder string) (string, error) {
	switch {
	case strings.HasPrefix(folder, "/"):
		return "", fmt.Errorf("base folder %q must be relative to the root of the repository", folder)
	case len(folder) > longestBaseFolder:
		return "", fmt.Errorf("base folder must not be longer than %d bytes", longestBaseFolder)
	case !utf8.ValidString(folder):
		return "", fmt.Errorf("base folder %q must be UTF-8", folder)
	}
	segments := folderSegments(folder)
	for _, segment := range segments {
		if reason := segmentFault(segment); reason != "" {
			return "", fmt.Errorf("base folder %q must not have the segment %q, which %s", folder, segment, reason)
		}
	}
	return strings.Join(segments, "/"), nil
}

// folderSegments returns the segments of a folder without empty ones and dots.
func folderSegments(folder string) []string {
	var segments []string
	for segment := range strings.SplitSeq(folder, "/") {
		if segment != "" && segment != "." {
			segments = append(segments, segment)
		}
	}
	return segments
}

// segmentFault returns why a segment is invalid, or an empty string if it is valid.
func segmentFault(segment string) string {
	switch {
	case segment == "..":
		return "leads upwards"
	case len(segment) > longestSegment:
		return fmt.Sprintf("is longer than %d bytes", longestSegment)
	case strings.ContainsFunc(segment, isInvisible):
		return "holds characters that cannot be seen"
	case strings.ContainsAny(segment, `\<>:"|?*`):
		return `holds one of \<>:"|?*`
	case strings.Trim(segment, " ") != segment, strings.HasSuffix(segment, "."):
		return "begins or ends with a blank or ends with a dot"
	case gitname.Reserved(segment) != "":
		return "Git can take for its own " + gitname.Reserved(segment)
	case gitname.IsDevice(segment):
		return "names a device on Windows"
	}
	return ""
}

// isInvisible reports whether char is a control or format character. Some file systems ignore those when they compare
// names.
func isInvisible(char rune) bool {
	return unicode.IsControl(char) || unicode.Is(unicode.Cf, char)
}

// FoldersOverlap reports whether two base folders are equal or one contains the other, ignoring case. The root of the
// repository contains all others.
func FoldersOverlap(a, b string) bool {
	first, second := folderSegments(a), folderSegments(b)
	for i := range min(len(first), len(second)) {
		if !strings.EqualFold(first[i], second[i]) {
			return false
		}
	}
	return true
}

// Join returns the repository path of a path relative to a clean base folder.
func Join(baseFolder, relative string) string {
	return path.Join(baseFolder, relative)
}
