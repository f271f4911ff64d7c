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

func TestStepOutcome(t *testing.T) {
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
				t.Errorf("got error %v, want the error of the step", err)
			}
			if !regexp.MustCompile(test.want).MatchString(out.String()) {
				t.Errorf("output %[2]q does not match %[1]s", test.want, out.String())
			}
		})
	}
}

func TestNilReporter(t *testing.T) {
	var reporter *progress.Reporter
	ran := false
	err := reporter.Step("digging", func() error { ran = true; return nil })
	if err != nil || !ran {
		t.Errorf("step ran: %v, error: %v, want a run without error", ran, err)
	}
}
