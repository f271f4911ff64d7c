// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldpath

import (
	"fmt"
	"strings"
)

// maxSummary is the length of a path that Summary leaves as it is, in bytes, so that a table with one fits a terminal.
const maxSummary = 40

// Summary returns the first of some paths, shortened for a table, and the number of the others, more of which are not in paths. It
// returns an empty string without paths.
func Summary(paths []string, more int) string {
	if len(paths) == 0 {
		return ""
	}
	text := short(paths[0])
	if others := len(paths) - 1 + more; others > 0 {
		text += fmt.Sprintf(" +%d", others)
	}
	return text
}

// short returns the first step of a long path, and as many of the last ones as fit, or else the end of the path.
func short(path string) string {
	if len(path) <= maxSummary {
		return path
	}
	steps := strings.Split(path, "/")
	last := steps[len(steps)-1]
	for i := len(steps) - 2; i > 1 && len(steps[1])+len(last)+len(steps[i]) < maxSummary-len("/.../")-1; i-- {
		last = steps[i] + "/" + last
	}
	if len(steps[1])+len(last) > maxSummary {
		return "..." + strings.ToValidUTF8(path[len(path)-maxSummary+len("..."):], "")
	}
	return "/" + steps[1] + "/.../" + last
}
