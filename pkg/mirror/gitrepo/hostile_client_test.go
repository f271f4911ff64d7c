// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// clientVariable is the environment variable that makes this process run a clientTask, so that its memory can be measured.
const clientVariable = "SLIPSTREAM_GITREPO_CLIENT"

// clientTask is the operation of a client process.
type clientTask struct {
	URL       string
	Operation string
	Limits    clientLimits
	// Key and KnownHosts are the credentials for SSH.
	Key, KnownHosts []byte
}

type clientLimits struct{ Memory, Transfer int64 }

// clientOutcome is the result of a client process.
type clientOutcome struct {
	Kind    gitrepo.Kind
	Message string
	// Resident and Heap are the maximum growth of the process and of its heap, in bytes.
	Resident, Heap int64
}

// operations are the operations that read from a remote.
var operations = map[string]func(context.Context, *gitrepo.Remote) error{
	"Check": func(ctx context.Context, remote *gitrepo.Remote) error { return remote.Check(ctx) },
	"Load": func(ctx context.Context, remote *gitrepo.Remote) error {
		_, err := gitrepo.Load(ctx, remote, "main", gitrepo.Options{})
		return err
	},
	"Push": func(ctx context.Context, remote *gitrepo.Remote) error {
		branch, err := gitrepo.Load(ctx, remote, "main", gitrepo.Options{})
		if err != nil {
			return fmt.Errorf("load empty branch: %w", err)
		}
		if _, _, err := branch.Stage(commitOf("change", set("a", "a"))); err != nil {
			return err
		}
		_, err = branch.Push(ctx)
		return err
	},
	"Contents": func(ctx context.Context, remote *gitrepo.Remote) error {
		branch, err := gitrepo.Load(ctx, remote, "main", gitrepo.Options{})
		if err != nil {
			return fmt.Errorf("load empty branch: %w", err)
		}
		_, err = branch.Contents(ctx, gitrepo.BlobHash([]byte("wanted")))
		return err
	},
	"Contains": func(ctx context.Context, remote *gitrepo.Remote) error {
		branch, err := gitrepo.Load(ctx, remote, "main", gitrepo.Options{})
		if err != nil {
			return fmt.Errorf("load empty branch: %w", err)
		}
		_, err = branch.Contains(ctx, gitrepo.BlobHash([]byte("wanted")), 100)
		return err
	},
}

// runClient runs the task in text and prints its outcome.
func runClient(text string) int {
	var task clientTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	remote := &gitrepo.Remote{
		URL: task.URL, Credentials: gitrepo.Credentials{SSHPrivateKey: task.Key, KnownHosts: task.KnownHosts},
		Limits: gitrepo.Limits{Memory: task.Limits.Memory, Transfer: task.Limits.Transfer},
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resident := peak()
	err := operations[task.Operation](context.Background(), remote)
	runtime.ReadMemStats(&after)
	outcome := clientOutcome{Resident: peak() - resident, Heap: int64(after.HeapSys) - int64(before.HeapSys)}
	var failed *gitrepo.Error
	switch {
	case errors.As(err, &failed):
		outcome.Kind, outcome.Message = failed.Kind, failed.Error()
	case err != nil:
		outcome.Message = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcome); err != nil {
		return 1
	}
	return 0
}

// peak returns the peak resident memory of this process in bytes.
func peak() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, _ := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// startClient runs the task in another process and returns the outcome.
func startClient(t *testing.T, task clientTask) clientOutcome {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), clientVariable+"="+string(text), "GOGC=100")
	var output, stderr bytes.Buffer
	command.Stdout, command.Stderr = &output, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("client: %v\n%s", err, stderr.String())
	}
	var outcome clientOutcome
	if err := json.Unmarshal(output.Bytes(), &outcome); err != nil {
		t.Fatalf("client printed %q: %v", output.String(), err)
	}
	return outcome
}
