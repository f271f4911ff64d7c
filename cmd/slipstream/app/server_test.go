// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	logsapi "k8s.io/component-base/logs/api/v1"
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

// TestLogIsPrintable checks that a name in an error can neither begin a line of the log nor control a terminal.
func TestLogIsPrintable(t *testing.T) {
	opts := options.New(apiserver.NewCodecs(apiserver.NewScheme()))
	var log bytes.Buffer
	if err := startLogging(opts, &log, os.Stdout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := logsapi.ResetForTest(opts.Features); err != nil {
			t.Error(err)
		}
	})
	failure := errors.New("role a\nI1126 00:00:00.000000 1 server.go:1] \"Forged\"\x1b[31m")
	klog.FromContext(t.Context()).Error(failure, "Failed to render object")
	klog.Errorf("Failed: %v", failure) //nolint:forbidigo // libraries log so
	klog.Flush()
	if text := log.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "\nI1126") || strings.Count(text, "Forged") != 2 {
		t.Errorf("the log is %q", text)
	}
}
