// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logredact

import (
	"io"
	"strings"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Printable returns a writer for log entries in klog's text format, each in one call of Write. Names, and what other servers send, reach
// the log in errors. Every character in an entry that a terminal would obey or hide is written as an escape such as \u001b, and its lines
// after the first are indented, so that none of them looks like another entry.
func Printable(out io.Writer) io.Writer {
	return printableWriter{out}
}

type printableWriter struct{ out io.Writer }

func (w printableWriter) Write(entry []byte) (int, error) {
	text, ended := strings.CutSuffix(printable.Text(string(entry)), "\n")
	text = indent(text)
	if ended {
		text += "\n"
	}
	if _, err := io.WriteString(w.out, text); err != nil {
		return 0, err
	}
	return len(entry), nil
}

// indent begins every line after the first with white space.
func indent(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines[1:] {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, " ") {
			lines[i+1] = "\t" + line
		}
	}
	return strings.Join(lines, "\n")
}
