// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/bench/memory"
	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// idleLength is how long the idle server is measured.
	idleLength = 10 * time.Second
	idleRounds = 3
)

// idle measures the CPU time and memory of an idle server, some time after its start.
func idle(b *testing.B, m *mirror) {
	m.restarted(b)
	server := m.server(b)
	pause(b, idleLength)
	var used []time.Duration
	for range idleRounds {
		before := server.cpu(b)
		pause(b, idleLength)
		used = append(used, server.cpu(b)-before)
	}
	b.ReportMetric(milliseconds(quantile(used, 0.5)), "cpu-ms/10s")
	server.reportMemory(b)
}

// held measures the memory of a server that was started with an existing population and
// listed all of it.
func held(b *testing.B, m *mirror) {
	m.restarted(b)
	server := m.server(b)
	pause(b, idleLength)
	server.reportMemory(b)
	b.ReportMetric(memory.MiB(b, server.id(), memory.Peak), "peak-MiB")
}

// process is the folder of a running process in /proc.
type process string

func (m *mirror) server(b *testing.B) process {
	b.Helper()
	return process(filepath.Join("/proc", m.Env(devcluster.EnvServerPIDs)))
}

func (p process) id() string { return filepath.Base(string(p)) }

// cpu returns the CPU time of the threads of the process.
func (p process) cpu(b *testing.B) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(filepath.Join(string(p), "task", "*", "schedstat"))
	if err != nil || len(threads) == 0 {
		b.Fatalf("%d threads below %s: %v", len(threads), p, err)
	}
	var sum time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			b.Fatal(err)
		}
		running, _, _ := strings.Cut(string(content), " ")
		nanoseconds, err := strconv.ParseInt(running, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(nanoseconds)
	}
	return sum
}

// clockTick is the unit of times in /proc/PID/stat: USER_HZ, which is 100 on all
// architectures that Linux and Go have in common.
const clockTick = 10 * time.Millisecond

// totalCPU returns the CPU time of this process and its children: the control plane, the Git server with its git
// commands, and the server.
func totalCPU(b *testing.B) time.Duration {
	b.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.Fatal(err)
	}
	own := strconv.Itoa(os.Getpid())
	var ticks int64
	for _, folder := range folders {
		content, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue // it has terminated
		}
		// The name before the last parenthesis may contain any characters.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if fields[1] == own || filepath.Base(folder) == own {
			ticks += ticksOf(b, fields[11:15])
		}
	}
	return time.Duration(ticks) * clockTick
}

// ticksOf adds the times in user and kernel mode of a process and of its children that it
// has waited for.
func ticksOf(b *testing.B, times []string) int64 {
	b.Helper()
	var sum int64
	for _, each := range times {
		n, err := strconv.ParseInt(each, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return sum
}

// reportMemory reports the resident memory, and its anonymous part.
func (p process) reportMemory(b *testing.B) {
	b.Helper()
	b.ReportMetric(memory.MiB(b, p.id(), memory.Resident), "rss-MiB")
	b.ReportMetric(memory.MiB(b, p.id(), memory.Anonymous), "anon-MiB")
}
