// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// inChild is the environment variable with the test that a child process runs.
const inChild = "SLIPSTREAM_TEST_IN_CHILD"

// impatient is what tests of upstream say when events do not come within 150 ms, as on a busy machine.
const impatient = "cannot receive enough events within specific time"

// runInChild runs a test in a process of its own, so that it can be parallel although it sets feature gates. The child's subtests are
// those that -run and -skip select. Their results are in its output.
func runInChild(t *testing.T, test func()) {
	t.Helper()
	if os.Getenv(inChild) == t.Name() {
		test()
		return
	}
	t.Parallel() // It mostly waits.
	pattern := "^" + t.Name() + "$"
	if _, subtests, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		pattern += "/" + subtests
	}
	arguments := []string{"-test.v", "-test.run=" + pattern, "-test.skip=" + flag.Lookup("test.skip").Value.String()}
	if deadline, ok := t.Deadline(); ok {
		arguments = append(arguments, "-test.timeout="+time.Until(deadline).String())
	}
	var output []byte
	var err error
	for range 10 { // A defect fails each time.
		child := exec.CommandContext(t.Context(), os.Args[0], arguments...)
		child.Env = append(os.Environ(), inChild+"="+t.Name())
		if output, err = child.CombinedOutput(); err == nil || !strings.Contains(string(output), impatient) {
			break
		}
	}
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(output), "--- PASS: "+t.Name()) && !t.Failed() {
		t.Error("the child process ran no test")
	}
}
