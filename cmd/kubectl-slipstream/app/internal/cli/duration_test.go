// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90m": 90 * time.Minute, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "-2d1h": -49 * time.Hour, "+1d": 24 * time.Hour, "0d": 0,
	} {
		var got time.Duration
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		cli.DurationVar(flags, &got, "for", time.Hour, "")
		if err := flags.Parse([]string{"--for=" + text}); err != nil || got != want {
			t.Errorf("%s: %v, %s, want %s", text, err, got, want)
		}
	}
	for _, text := range []string{"", "d", "1", "yesterday", "1dd", "1d-1h", "1d2d", "1.5d", "1000000d"} {
		if got, err := cli.ParseDuration(text); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}
