// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "y": true, "\n": false, "": false, "n\n": false, "yeah\n": false} {
		var out strings.Builder
		err := cli.Ask(t.Context(), strings.NewReader(answer), &out, "Write? ")
		if (err == nil) != want || out.String() != "Write? " {
			t.Errorf("%q: %v, printed %q", answer, err, out.String())
		}
	}
}

// TestAskEnds does not wait for an answer when the command is interrupted.
func TestAskEnds(t *testing.T) {
	in, answers := io.Pipe()
	t.Cleanup(func() { _ = answers.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	err := cli.Ask(ctx, in, &out, "Write? ")
	if cli.ExitCode(err) != 130 || !strings.Contains(err.Error(), "nothing is written") {
		t.Errorf("exit code %d: %v", cli.ExitCode(err), err)
	}
}

func TestColoured(t *testing.T) {
	const text = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n"
	if got := cli.Coloured(text, false); got != text {
		t.Errorf("without a terminal: %q", got)
	}
	want := "\x1b[1m--- a\x1b[m\n\x1b[1m+++ b\x1b[m\n\x1b[36m@@ -1 +1 @@\x1b[m\n\x1b[31m-old\x1b[m\n\x1b[32m+new\x1b[m\n same\n"
	if got := cli.Coloured(text, true); got != want {
		t.Errorf("%q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := cli.Coloured(text, true); got != text {
		t.Errorf("with NO_COLOR: %q", got)
	}
}
