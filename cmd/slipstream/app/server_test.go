// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
)

// TestVerbosity checks that the verbosity of the command line configures the log. Flag sets are joined in random order, so a
// flag that is in two of them would work in some runs only: one run does not show it.
func TestVerbosity(t *testing.T) {
	for range 20 {
		opts, command := options.New(apiserver.NewCodecs(apiserver.NewScheme())), &cobra.Command{Use: "slipstream"}
		addFlags(command, opts)
		if err := command.ParseFlags([]string{"-v=3"}); err != nil {
			t.Fatal(err)
		}
		if got := opts.Logging.Verbosity; got != 3 {
			t.Fatalf("with -v=3 the verbosity is %d", got)
		}
	}
}

// hostileLogs has the test binary log hostile names, instead of running the tests. The log belongs to the process, in which connections of
// other tests log at any time.
const hostileLogs = "SLIPSTREAM_TEST_HOSTILE_LOGS"

// logHostileNames is the program whose log TestLogIsPrintable reads. It returns its exit code.
func logHostileNames(ctx context.Context) int {
	if err := startLogging(options.New(apiserver.NewCodecs(apiserver.NewScheme())), os.Stderr, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		return 1
	}
	failure := errors.New("role a\nI1126 00:00:00.000000 1 server.go:1] \"Forged\"\x1b[31m")
	klog.FromContext(ctx).Error(failure, "Failed to render object")
	klog.Errorf("Failed: %v", failure) //nolint:forbidigo // libraries log so
	klog.Flush()
	return 0
}

// TestLogIsPrintable checks that a name in an error can neither begin a line of the log nor control a terminal.
func TestLogIsPrintable(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), hostileLogs+"=1")
	output, err := program.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if text := string(output); strings.Contains(text, "\x1b") || strings.Contains(text, "\nI1126") || strings.Count(text, "Forged") != 2 {
		t.Errorf("the log is %q", text)
	}
}
