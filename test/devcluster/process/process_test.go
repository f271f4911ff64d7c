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

// startShell starts a shell with a script and ends it with the test.
func startShell(t *testing.T, script string, env ...string) process.Process {
	t.Helper()
	running, err := process.Start(process.Spec{
		Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Env: env,
		Log: filepath.Join(t.TempDir(), "shell.log"),
	})
	if err != nil {
		t.Fatalf("starting: %v", err)
	}
	t.Cleanup(func() {
		if err := running.Stop(context.Background(), syscall.SIGKILL); err != nil {
			t.Errorf("cleaning up: %v", err)
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
		t.Fatalf("waiting for %q in the log: %v", text, err)
	}
}

func TestStartWritesTheLogAndPassesTheEnvironment(t *testing.T) {
	running := startShell(t, `echo "hello $NAME"; echo problem >&2`, "NAME=cluster")
	waitForLog(t, running, "hello cluster\nproblem\n")
}

func TestStartTellsThatThereIsNoProgram(t *testing.T) {
	_, err := process.Start(process.Spec{Name: "nothing", Path: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "starting nothing") {
		t.Errorf("want an error that names the process, got %v", err)
	}
}

func TestAliveUntilTheEnd(t *testing.T) {
	running := startShell(t, "sleep 60")
	if !running.Alive() {
		t.Error("a process that runs is not alive")
	}
	if err := running.Stop(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatalf("stopping: %v", err)
	}
	if running.Alive() {
		t.Error("a process that was stopped is alive")
	}
	if err := running.Stop(t.Context(), syscall.SIGTERM); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
}

func TestStopWaitsNoLongerThanItsContext(t *testing.T) {
	running := startShell(t, "trap '' TERM; echo deaf; while :; do sleep 1; done")
	waitForLog(t, running, "deaf")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := running.Stop(ctx, syscall.SIGTERM); err == nil {
		t.Error("no error although the process goes on")
	}
	if !running.Alive() {
		t.Error("the process has ended although it ignores the signal")
	}
}

// A process with the same id that began at another moment is somebody else's.
func TestSignalSparesAnotherProcessWithTheSamePID(t *testing.T) {
	running := startShell(t, "sleep 60")
	earlier := running
	earlier.Begin += "0"
	if earlier.Alive() {
		t.Error("a process that began at another moment counts as this one")
	}
	if err := earlier.Stop(t.Context(), syscall.SIGKILL); err != nil {
		t.Errorf("stopping a process of the past: %v", err)
	}
	if !running.Alive() {
		t.Error("the wrong process was ended")
	}
}
