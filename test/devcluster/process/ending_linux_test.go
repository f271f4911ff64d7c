// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster/process"
)

// endFirstThread is the environment variable that makes this program outlive its first thread.
const endFirstThread = "END_FIRST_THREAD"

// init runs in the first thread of the program, which it ends on demand. Another thread ends the program when its input ends.
func init() {
	if os.Getenv(endFirstThread) == "" {
		return
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	if _, _, code := syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0); code != 0 {
		panic(code)
	}
}

// TestEnding starts a process whose first thread has ended: it is a zombie, and still has its files open.
func TestEnding(t *testing.T) {
	input, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	running, err := process.Start(process.Spec{
		Name: "zombie", Path: os.Args[0], Env: []string{endFirstThread + "=1"}, Input: input, Log: filepath.Join(t.TempDir(), "log"),
	})
	if err := errors.Join(err, input.Close()); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return running.Ending(), nil })
	if err != nil {
		t.Fatalf("wait for the end of the first thread: %v", err)
	}
	if !running.Alive() {
		t.Error("process with a thread is not alive")
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if err := running.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if running.Alive() || running.Ending() {
		t.Error("ended process is alive or about to end")
	}
}
