// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// startShell starts a shell with a script and stops it when the test ends.
func startShell(t *testing.T, script string, env ...string) process.Process {
	t.Helper()
	running, err := process.Start(process.Spec{
		Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Env: env,
		Log: filepath.Join(t.TempDir(), "shell.log"),
	})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := running.Stop(context.Background(), syscall.SIGKILL); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return running
}

// waitForLog waits until the process has written the text.
func waitForLog(t *testing.T, running process.Process, text string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			content, err := os.ReadFile(running.Log)
			return strings.Contains(string(content), text), err
		})
	if err != nil {
		t.Fatalf("wait for %q in the log: %v", text, err)
	}
}

func TestStartLogAndEnvironment(t *testing.T) {
	running := startShell(t, `echo "hello $NAME"; echo problem >&2`, "NAME=cluster")
	waitForLog(t, running, "hello cluster\nproblem\n")
}

func TestStartMissingProgram(t *testing.T) {
	_, err := process.Start(process.Spec{Name: "missing", Path: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "start missing") {
		t.Errorf("got error %v, want the name of the process", err)
	}
}

func TestAlive(t *testing.T) {
	running := startShell(t, "sleep 60")
	if !running.Alive() {
		t.Error("running process is not alive")
	}
	if err := running.Stop(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if running.Alive() {
		t.Error("stopped process is alive")
	}
	if err := running.Stop(t.Context(), syscall.SIGTERM); err != nil {
		t.Errorf("stop an ended process: %v", err)
	}
}

func TestStopContextEnds(t *testing.T) {
	running := startShell(t, "trap '' TERM; echo ready; while :; do sleep 1; done")
	waitForLog(t, running, "ready")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := running.Stop(ctx, syscall.SIGTERM); err == nil {
		t.Error("got no error for a running process")
	}
	if !running.Alive() {
		t.Error("process that ignores the signal has ended")
	}
}

// A process with the same id that began at another time is a different process.
func TestSignalRecycledPID(t *testing.T) {
	running := startShell(t, "sleep 60")
	earlier := running
	earlier.Begin += "0"
	if earlier.Alive() {
		t.Error("process with another beginning is alive")
	}
	if err := earlier.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Errorf("stop a process with another beginning: %v", err)
	}
	if !running.Alive() {
		t.Error("process with another beginning was stopped")
	}
}
