// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// limits are what a host stores, in UTF-16 units, which are at least as many as the characters that hosts count.
type limits struct {
	host                 string
	title, body, comment int
	// titleInBytes reports whether the limit of a title is one of bytes in UTF-8.
	titleInBytes bool
	// draftPrefixes mark the title of a draft. The first one is written. There are none if drafts have a field of their own.
	draftPrefixes []string
	// hasQuickActions reports whether lines that begin with a slash are commands.
	hasQuickActions bool
}

// maxQuoted is a limit for texts of hosts with a larger one or none: the response of the API, which quotes the text and escapes characters
// of it, must be smaller than what is read.
const maxQuoted = 128 << 10

// fit returns the content as it is stored.
func (l limits) fit(content Content) Content {
	title := strings.Join(strings.FieldsFunc(content.Title, isSpaceOrControl), " ")
	title, _ = l.cutDraft(title)
	reserved := 0
	if len(l.draftPrefixes) > 0 {
		reserved = len(l.draftPrefixes[0]) + 1
	}
	content.Title = l.cutTitle(title, l.title-reserved)
	content.Body = l.cut(l.escape(content.Body), l.body)
	return content
}

func (l limits) cutTitle(title string, limit int) string {
	title = strings.ToValidUTF8(title, "�")
	if l.titleInBytes {
		return truncate(title, limit)
	}
	if units(title) <= limit {
		return title
	}
	return strings.TrimSpace(head(title, limit-1)) + "…"
}

func isSpaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// cutDraft returns a title without the prefixes of drafts, and whether it had one.
func (l limits) cutDraft(title string) (string, bool) {
	isDraft := false
	for found := true; found; {
		found = false
		for _, prefix := range l.draftPrefixes {
			if len(title) >= len(prefix) && strings.EqualFold(title[:len(prefix)], prefix) {
				title, isDraft, found = strings.TrimSpace(title[len(prefix):]), true, true
			}
		}
	}
	return title, isDraft
}

// titleOf returns the title that marks a draft if the content is one.
func (l limits) titleOf(content Content) string {
	if content.Draft && len(l.draftPrefixes) > 0 {
		return l.draftPrefixes[0] + " " + content.Title
	}
	return content.Title
}

// fitComment returns a comment with its marker.
func (l limits) fitComment(text, ending string) string {
	const separator = "\n\n"
	return l.cut(l.escape(strings.TrimSpace(text)), l.comment-len(separator)-len(ending)) + separator + ending
}

// cut returns the lines of a text that fit into a limit, and a last line that says so if not all do.
func (l limits) cut(text string, limit int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
	if units(text) <= limit {
		return text
	}
	note := fmt.Sprintf("\n\n*%s stores at most %d characters. The rest is left out.*\n", l.host, limit)
	start := head(text, limit-units(note))
	if end := strings.LastIndexByte(start, '\n'); end >= 0 {
		start = start[:end]
	}
	return start + note
}

// quickAction is the beginning of a line that GitLab executes, such as /merge.
var quickAction = regexp.MustCompile(`(?m)^([\t >]*)/([A-Za-z])`)

// escape keeps a host from executing lines of a text. Names of objects and users may be in it, and the token has more rights than they.
func (l limits) escape(text string) string {
	if !l.hasQuickActions {
		return text
	}
	return quickAction.ReplaceAllString(text, `$1\/$2`)
}

// units returns the UTF-16 units of a text.
func units(text string) int {
	count := 0
	for _, r := range text {
		count += unitsOf(r)
	}
	return count
}

func unitsOf(r rune) int {
	const lastOfOne = 0xffff
	if r > lastOfOne {
		return 2
	}
	return 1
}

// head returns the start of a text, of at most limit UTF-16 units.
func head(text string, limit int) string {
	for at, r := range text {
		if limit -= unitsOf(r); limit < 0 {
			return text[:at]
		}
	}
	return text
}

// markerPattern is what a marker consists of. Two hyphens would end the HTML comment.
var markerPattern = regexp.MustCompile(`^[A-Za-z0-9._:/=]+(-[A-Za-z0-9._:/=]+)*$`)

const maxMarker = 200

func markerText(marker string) (string, error) {
	if len(marker) > maxMarker || !markerPattern.MatchString(marker) {
		return "", invalid("a marker has at most %d letters, digits and ._:/=-", maxMarker)
	}
	return "<!-- slipstream:" + marker + " -->", nil
}
