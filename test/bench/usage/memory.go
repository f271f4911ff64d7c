// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage reads the memory and the processor time that running processes use, and builds the server to be measured.
package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The kinds of memory usage.
const (
	// Resident is the current resident memory.
	Resident = "VmRSS"
	// Anonymous is the part of it without a backing file. The rest is the program's text and pages of store files, which the
	// kernel can reclaim.
	Anonymous = "RssAnon"
	// Peak is the maximum of Resident since the start of the process, or since ForgetPeak.
	Peak = "VmHWM"
)

// MiB returns the memory usage of the process with an id, in mebibytes.
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

// ForgetPeak resets Peak.
func ForgetPeak(t testing.TB, pid string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc", pid, "clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}
