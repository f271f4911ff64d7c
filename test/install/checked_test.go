// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// Exit codes of slipstream check.
const (
	checkedGood = iota
	checkedBad
	checkedNothing
)

// check runs slipstream check once as a user, and expects an exit code and a text.
func (s *testCluster) check(t *testing.T, user devcluster.Kubeconfig, code int, text string, arguments ...string) {
	t.Helper()
	arguments = append([]string{"check", "--kubeconfig=" + string(user), "--namespace=" + namespace, "--timeout=0s"}, arguments...)
	out, err := exec.CommandContext(t.Context(), s.program, arguments...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	got := 0
	if exit != nil {
		got = exit.ExitCode()
	}
	if got != code || !strings.Contains(string(out), text) {
		t.Errorf("slipstream %s exited with %d, want %d and %q:\n%s", strings.Join(arguments, " "), got, code, text, out)
	}
}

// checkRefuses runs the check with invalid arguments, whose exit code must differ from that of a broken installation.
func (s *testCluster) checkRefuses(t *testing.T) {
	t.Helper()
	for text, argument := range map[string]string{
		"--timeout must not be negative": "--timeout=-1s",
		"unknown flag: --time":           "--time=1s",
		`unknown command "fast"`:         "fast",
		"invalid argument":               "--timeout=soon",
		"no such file or directory":      "--kubeconfig=/nowhere",
	} {
		s.check(t, s.Admin(), checkedNothing, text, argument)
	}
}

// checkRoles are the types of the objects that helm test creates beside its Pod.
const checkRoles = "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts"

// interruptCheck kills a running helm test. The server must be stopped, so that the check waits for it.
func (s *testCluster) interruptCheck(t *testing.T) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.command(ctx, "", s.helm, "test", "slipstream", "-n", namespace)
		ended <- err
	}()
	mirrortest.Eventually(t, "the check waits for the server", func(ctx context.Context) error {
		phase, err := s.Administrator.Run(ctx, "get", "pod/slipstream-check", "-n", namespace, "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Running" {
			err = fmt.Errorf("phase of the Pod = %s", phase)
		}
		return err
	})
	kill()
	if err := <-ended; err == nil {
		t.Error("helm test passed without a server")
	}
}

// leftByCheck returns the objects of helm test without its Pod.
func (s *testCluster) leftByCheck(t *testing.T) []string {
	t.Helper()
	return strings.Fields(s.Run(t, "get", checkRoles, "-A", "-l", "app.kubernetes.io/component=check", "-o", "name"))
}

// replacesInterrupted checks that a helm test replaces the objects of an interrupted one.
func (s *testCluster) replacesInterrupted(t *testing.T) {
	t.Helper()
	if left := s.leftByCheck(t); len(left) != 5 {
		t.Errorf("objects of the interrupted helm test: %v, want an account, two roles and their bindings", left)
	}
	s.do(t, "", s.helm, "test", "slipstream", "-n", namespace)
	if left := s.leftByCheck(t); len(left) > 0 {
		t.Errorf("objects after the next helm test: %v", left)
	}
}

// uninstallInterrupted checks that helm uninstall keeps these objects, and that the commands of the page on installing remove them.
func (s *testCluster) uninstallInterrupted(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.interruptCheck(t)
	s.do(t, "", s.helm, "uninstall", "slipstream", "-n", namespace, "--wait")
	if left := s.left(t); len(left) != 4 {
		t.Errorf("objects left in the cluster: %v, want the roles of helm test", left)
	}
	s.Run(t, "delete", "namespace", namespace, "--timeout=10m")
	s.Run(t, "delete", "clusterrole,clusterrolebinding", "slipstream-check")
	if left := s.left(t); len(left) > 0 {
		t.Errorf("objects left in the cluster: %v", left)
	}
}
