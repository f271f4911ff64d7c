// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package container_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/container"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

func TestContainerShowsTheImageAndItsMountsOnly(t *testing.T) {
	spec, support := probe(t)
	want := map[string]string{
		"pid": "1", "environment": "NAME=value",
		"files": "config data dev etc probe proc", "read-only volume": "content",
		"write /new": "open /new: read-only file system", "write /data/new": "done",
		"write /config/new": "open /config/new: read-only file system", "write /dev/null": "done",
		"Uid": "65532 65532 65532 65532", "Gid": "65533 65533 65533 65533", "Groups": "65534",
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1",
	}
	if difference := cmp.Diff(want, run(t, support, spec)); difference != "" {
		t.Error(difference)
	}

	root := spec
	root.User, root.Group, root.ReadOnlyRoot = 0, 0, false
	want["Uid"], want["Gid"], want["write /new"] = "0 0 0 0", "0 0 0 0", "done"
	// Without capabilities, root cannot write to the folder of another user.
	want["write /data/new"] = "open /data/new: permission denied"
	if difference := cmp.Diff(want, run(t, support, root)); difference != "" {
		t.Errorf("as root: %s", difference)
	}
}

func TestContainerEndsWithItsContext(t *testing.T) {
	spec, support := probe(t)
	spec.Args = append(spec.Args, "stay")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command, err := container.Command(ctx, support, spec)
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		t.Fatal("the container ended before its first output:", err)
	}
	cancel()
	if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != -1 {
		t.Errorf("container ended with %v, want the signal that killed it", err)
	}
}

func TestCommandRefusesWhatCannotRun(t *testing.T) {
	for name, spec := range map[string]container.Spec{
		"relative root":        {Root: "image", Args: []string{"/program"}},
		"no program":           {Root: "/image"},
		"relative program":     {Root: "/image", Args: []string{"program"}},
		"relative mount point": {Root: "/image", Args: []string{"/program"}, Mounts: []container.Mount{{HostPath: "/tmp", Path: "data"}}},
	} {
		if _, err := container.Command(t.Context(), "dev", spec); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// probe returns a container of the command probe, and the program that starts containers.
func probe(t *testing.T) (container.Spec, string) {
	t.Helper()
	container.NeedRoot(t)
	root, data, config := t.TempDir(), t.TempDir(), t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "probe"), "./testdata/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if err := os.Chown(data, 65532, 65533); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "file"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	support := clustertest.Program(t, "hack/dev")
	return container.Spec{
		Root: root, ReadOnlyRoot: true, Args: []string{"/probe"}, Env: []string{"NAME=value"},
		Mounts: []container.Mount{{HostPath: data, Path: "/data"}, {HostPath: config, Path: "/config", ReadOnly: true}},
		User:   65532, Group: 65533, Groups: []int{65534},
	}, support
}

func run(t *testing.T, support string, spec container.Spec) map[string]string {
	t.Helper()
	command, err := container.Command(t.Context(), support, spec)
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	results := map[string]string{}
	if err := json.Unmarshal(output, &results); err != nil {
		t.Fatal(err, strings.TrimSpace(string(output)))
	}
	return results
}
