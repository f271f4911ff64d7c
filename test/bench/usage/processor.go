// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// CPU returns the processor time of the threads of the process with an id.
func CPU(t testing.TB, pid string) time.Duration {
	t.Helper()
	threads, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "schedstat"))
	if err != nil || len(threads) == 0 {
		t.Fatalf("%d threads of process %s: %v", len(threads), pid, err)
	}
	var sum time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		running, _, _ := strings.Cut(string(content), " ")
		nanoseconds, err := strconv.ParseInt(running, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// clockTick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on all
// architectures that Linux and Go have in common.
const clockTick = 10 * time.Millisecond

// ByProgram returns the processor time of this process and its children, by the first 15 bytes of the name of the program: the control
// plane, the server, and the Git server with its git commands.
func ByProgram(t testing.TB) map[string]time.Duration {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(os.Getpid())
	out := map[string]time.Duration{}
	for _, folder := range folders {
		content, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue // it has terminated
		}
		// The name between the parentheses may contain any characters.
		begin, end := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
		fields := strings.Fields(string(content[end+1:]))
		if fields[1] == own || filepath.Base(folder) == own {
			out[string(content[begin+1:end])] += time.Duration(ticksOf(t, fields[11:15])) * clockTick
		}
	}
	return out
}

// ticksOf adds the times in user and kernel mode of a process and of its children that it
// has waited for.
func ticksOf(t testing.TB, times []string) int64 {
	t.Helper()
	var sum int64
	for _, each := range times {
		n, err := strconv.ParseInt(each, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
