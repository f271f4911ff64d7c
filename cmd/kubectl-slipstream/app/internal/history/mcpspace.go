// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	// maxAnswer is the size of an answer, in bytes of JSON.
	maxAnswer = 64 << 10
	// maxToolLine is the length of the longest text on one line, in bytes, except in YAML and diffs.
	maxToolLine = 1 << 10
)

// space is what is left for the data of an answer.
type space struct {
	left int
	// cut says what had no space.
	cut []string
}

// fits reports whether there is space for a value, and takes it.
func (s *space) fits(value any) bool {
	size := jsonSize(value)
	if size > s.left {
		return false
	}
	s.left -= size
	return true
}

// text returns the lines from a number on, 1 for the first, as far as there is space for them. The continuation says how to ask for the rest.
func (s *space) text(lines []string, from int, continuation string) (string, error) {
	from = max(from, 1)
	if from > max(len(lines), 1) {
		return "", fmt.Errorf("fromLine is %d: there are %d lines", from, len(lines))
	}
	var out strings.Builder
	for i, line := range lines[from-1:] {
		line = printable.Text(line)
		if s.fits(line) {
			out.WriteString(line)
			continue
		}
		at := from + i
		if i == 0 { // Nothing would ever return it.
			out.WriteString(cutText(line, s.left/escapedSize))
			s.cut = append(s.cut, fmt.Sprintf("Line %d of %d is too long, and only its beginning is here.", at, len(lines)))
			at++
		}
		if at <= len(lines) {
			s.cut = append(s.cut, fmt.Sprintf("These are lines %d to %d of %d. For the next ones %s fromLine: %d.", from, at-1, len(lines), continuation, at))
		}
		s.left = 0
		break
	}
	return out.String(), nil
}

// escapedSize is the size of the longest escape of a byte in JSON.
const escapedSize = len(`\u003c`)

func jsonSize(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return maxAnswer + 1
	}
	return len(text)
}

// toolLine returns a text as one line without invisible characters, cut at maxToolLine.
func toolLine(text string) string {
	return cutText(printable.Line(text), maxToolLine)
}

func cutText(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(0, limit-len(mark))], "") + mark
}
