// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory answers how much memory a running process has.
package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The figures of a process.
const (
	// Resident is what it has now.
	Resident = "VmRSS"
	// Anonymous is the part of it that no file backs: the rest is the program's text and the stores' pages, which the kernel
	// takes back when it needs them.
	Anonymous = "RssAnon"
	// Peak is the most that has been resident since the process began, or since ForgetPeak.
	Peak = "VmHWM"
)

// MiB returns a figure of the process with an id, in mebibytes.
func MiB(t testing.TB, pid, figure string) float64 {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, figure+":"); ok {
			var kibibytes float64
			if _, err := fmt.Sscanf(value, "%f kB", &kibibytes); err != nil {
				t.Fatalf("reading %s: %v", strings.TrimSpace(line), err)
			}
			return kibibytes / 1024
		}
	}
	t.Fatalf("no %s in the status of process %s", figure, pid)
	return 0
}

// ForgetPeak makes Peak begin anew.
func ForgetPeak(t testing.TB, pid string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc", pid, "clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
