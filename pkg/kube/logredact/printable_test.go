// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package logredact_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/kube/logredact"
)

func TestPrintable(t *testing.T) {
	for name, test := range map[string]struct{ entry, want string }{
		"one line":             {"I1126 a \"b\" c=\"é\"\n", "I1126 a \"b\" c=\"é\"\n"},
		"no line end":          {"I1126 a", "I1126 a"},
		"empty":                {"", ""},
		"an empty line":        {"\n", "\n"},
		"controls":             {"E1126 \x1b[2Ka\rb\u009bc\u202ed\x00\n", `E1126 \u001b[2Ka\u000db\u009bc\u202ed\u0000` + "\n"},
		"a value with lines":   {"E1126 \"a\" err=<\n\tb\n\tc\n >\n", "E1126 \"a\" err=<\n\tb\n\tc\n >\n"},
		"lines of another one": {"E1126 a\nI1126 b\n\nI1126 c\n", "E1126 a\n\tI1126 b\n\t\n\tI1126 c\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			n, err := logredact.Printable(&out).Write([]byte(test.entry))
			if err != nil || n != len(test.entry) {
				t.Errorf("Write() = %d, %v, want all of %d bytes", n, err, len(test.entry))
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("wrong entry (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrintableReturnsErrors(t *testing.T) {
	failure := errors.New("full")
	reader, writer := io.Pipe()
	reader.CloseWithError(failure)
	if n, err := logredact.Printable(writer).Write([]byte("a")); n != 0 || !errors.Is(err, failure) {
		t.Errorf("Write() = %d, %v, want 0, %v", n, err, failure)
	}
}
