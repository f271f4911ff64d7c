// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/progress"
)

func TestStepTellsItsOutcome(t *testing.T) {
	failure := errors.New("broken")
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"success": {nil, `^digging \.\.\.\ndigging: done after [0-9.]+m?s\n$`},
		"failure": {failure, `^digging \.\.\.\ndigging: failed after [0-9.]+m?s\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := progress.NewReporter(&out).Step("digging", func() error { return test.err })
			if !errors.Is(err, test.err) {
				t.Errorf("want the error of the step, got %v", err)
			}
			if !regexp.MustCompile(test.want).MatchString(out.String()) {
				t.Errorf("want %s, got %q", test.want, out.String())
			}
		})
	}
}

func TestNilReporterKeepsQuiet(t *testing.T) {
	var reporter *progress.Reporter
	ran := false
	err := reporter.Step("digging", func() error { ran = true; return nil })
	if err != nil || !ran {
		t.Errorf("want the step to run, ran %v with error %v", ran, err)
	}
}
