// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package programs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// newModule creates a module with one program that prints the text.
func newModule(t *testing.T, text string) string {
	t.Helper()
	root := t.TempDir()
	writeFile(t, filepath.Join(root, "go.mod"), "module example.com/small\n\ngo 1.26\n")
	writeProgram(t, root, text)
	return root
}

func writeProgram(t *testing.T, root, text string) {
	t.Helper()
	writeFile(t, filepath.Join(root, "cmd", "speak", "main.go"), "package main\n\nfunc main() { println(\""+text+"\") }\n")
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProductIsRebuilt(t *testing.T) {
	root := newModule(t, "first")
	for _, text := range []string{"first", "second"} {
		writeProgram(t, root, text)
		program, err := programs.Product(t.Context(), root, "cmd/speak")
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != text {
			t.Errorf("program printed %[2]q, %[3]v, want %[1]q", text, out, err)
		}
	}
}

func TestConcurrentProduct(t *testing.T) {
	root := newModule(t, "hello")
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			program, err := programs.Product(t.Context(), root, "cmd/speak")
			if err != nil {
				return err
			}
			return exec.CommandContext(t.Context(), program).Run()
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestProductCompilerError(t *testing.T) {
	root := newModule(t, `" + missing + "`)
	if _, err := programs.Product(t.Context(), root, "cmd/speak"); err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("error = %v, want that of the compiler", err)
	}
}

func TestModuleRoot(t *testing.T) {
	root := newModule(t, "hello")
	for _, below := range []string{root, filepath.Join(root, "cmd"), filepath.Join(root, "cmd", "speak")} {
		if got, err := programs.ModuleRoot(below); err != nil || got != root {
			t.Errorf("module root of %s = %[3]s, %[4]v, want %[2]s", below, root, got, err)
		}
	}
	if got, err := programs.ModuleRoot("/"); err == nil {
		t.Errorf("module root of / = %s, want an error", got)
	}
}

func TestBuild(t *testing.T) {
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	set, err := programs.Build(t.Context(), programs.ControlPlaneModule(root), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{set.APIServer, set.ControllerManager, set.Scheduler} {
		out, err := exec.CommandContext(t.Context(), program, "--version").Output()
		if err != nil || !strings.HasPrefix(string(out), "Kubernetes v1.") {
			t.Errorf("%s --version printed %q, %v", program, out, err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), set.Etcd, "--version").Output(); err != nil {
		t.Errorf("%s: %v: %s", set.Etcd, err, out)
	}
}
