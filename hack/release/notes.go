// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is where the links of the release notes lead to, and where the source is.
const repository = "https://github.com/configbutler/slipstream"

// writeNotes writes the section of the version in CHANGELOG.md as release notes.
func writeNotes(s settings) error {
	content, err := os.ReadFile(filepath.Join(s.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notes(string(content), s.version)
	if err != nil {
		return err
	}
	return s.write("release-notes.md", []byte(text))
}

var (
	// heading matches the heading of a version, with a date after a comma.
	heading = regexp.MustCompile(`(?m)^## (\S+?)(,.*)?$`)
	// relative matches the beginning of a link to a file of the repository.
	relative = regexp.MustCompile(`\]\(([A-Za-z][\w./-]*(#[\w-]*)?)\)`)
)

// notes returns the section of a version, with links to the files of the version.
func notes(changelog, version string) (string, error) {
	headings := heading.FindAllStringSubmatchIndex(changelog, -1)
	for at, found := range headings {
		if changelog[found[2]:found[3]] != version {
			continue
		}
		end := len(changelog)
		if at+1 < len(headings) {
			end = headings[at+1][0]
		}
		section := strings.TrimSpace(changelog[found[1]:end])
		return relative.ReplaceAllString(section, "]("+repository+"/blob/"+version+"/$1)") + "\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no section %s", version)
}
