// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"bufio"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// expectPlugin runs the plugin as a user, and expects an exit code and, in one of the outputs, lines that match.
func (c *fixture) expectPlugin(t *testing.T, by *people.Person, code int, lines []string, arguments ...string) {
	t.Helper()
	out, err := c.plugin(t, by).Run(t.Context(), append(arguments, "-n", c.team)...)
	got, exit := 0, (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		got, out = exit.ExitCode(), out+err.Error()
	}
	if got != code {
		t.Errorf("%q by %s ends with %d, want %d: %v", arguments, by.Name, got, code, err)
	}
	for _, line := range lines {
		if !regexp.MustCompile("(?m)" + line).MatchString(out) {
			t.Errorf("%q by %s printed no line %s:\n%s", arguments, by.Name, line, out)
		}
	}
}

// expectPromptInPlugin expects the plugin to show dave that the image of api has changed in the source, and who changed it.
func (c *fixture) expectPromptInPlugin(t *testing.T) {
	t.Helper()
	image := `spec\.template\.spec\.containers\[main\]\.image`
	c.expectPlugin(t, c.dave, 1, []string{
		"^NAME +STATE +REV +AUTO +WAITS FOR$", "^catalog/shop +Up to date +r2$", "^`- environment/alice +1 workload changed +r1->r2 +no +you$",
	}, "status", "--exit-code")
	c.expectPlugin(t, c.dave, 1, []string{
		"^~ Deployment/api +" + image + "$", `^    - shop/api:1$`, `^    \+ shop/api:2 +ann, audit`, `^1 update, \d+ unchanged$`,
	}, "diff", "alice")
	c.expectPlugin(t, c.dave, 0, []string{
		"^Deployment/api is behind by one change: " + image + " shop/api:1 -> shop/api:2$", `^  production  ann \(audit\)`,
		"^  here        shop/api:1, owned by slipstream, applied at r1$", "^  why not     manual sync", "^  do          kubectl slipstream sync alice -n ",
	}, "explain-drift", "alice", "deployment/api")
	c.expectPlugin(t, c.dave, 5, []string{"environments/secretdiff"}, "secretdiff", "alice")
	c.expectPlugin(t, c.ann, 5, []string{"forbidden"}, "status")
	c.expectPlugin(t, c.dave, 2, []string{"not found"}, "diff", "nobody")
}

// followStatus starts status -w by dave, and returns a function that waits for a line that matches.
func (c *fixture) followStatus(t *testing.T) (waitFor func(line string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Timeout)
	t.Cleanup(cancel)
	command := c.plugin(t, c.dave).Command(ctx, "status", "-w", "-n", c.team)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // It was killed.
	})
	scanner := bufio.NewScanner(out)
	return func(line string) {
		t.Helper()
		var seen []string
		for scanner.Scan() {
			if seen = append(seen, scanner.Text()); regexp.MustCompile(line).MatchString(scanner.Text()) {
				return
			}
		}
		t.Errorf("status -w printed no line %s:\n%s", line, strings.Join(seen, "\n"))
	}
}
