// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// ProgressInterval is the minimum time between progress messages.
const ProgressInterval = 2 * time.Second

// IsTerminal reports whether a stream is a terminal that shows colours or asks a person.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colours of a diff, as Git has them.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[m"
)

// Coloured colours the lines of a unified diff. Nothing is coloured if NO_COLOR is set.
func Coloured(text string, wanted bool) string {
	if !wanted || os.Getenv("NO_COLOR") != "" {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		colour := ""
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			colour = bold
		case strings.HasPrefix(line, "@@"):
			colour = cyan
		case strings.HasPrefix(line, "-"):
			colour = red
		case strings.HasPrefix(line, "+"):
			colour = green
		}
		if colour == "" {
			out.WriteString(line)
			continue
		}
		_, _ = fmt.Fprint(&out, colour, strings.TrimSuffix(line, "\n"), reset, "\n") // A Builder has no errors.
	}
	return out.String()
}
