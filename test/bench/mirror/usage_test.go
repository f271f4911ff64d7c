// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/bench/samples"
	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// restLength is how long the server rests before it is measured: after 30 s to 60 s, it returns the memory that the start needed.
	restLength = 65 * time.Second
	// idleLength is how long the idle server is measured.
	idleLength = 10 * time.Second
	idleRounds = 3
)

// idle measures the CPU time and memory of an idle server, some time after its start.
func idle(b *testing.B, m *mirror) {
	m.restarted(b)
	server := m.server(b)
	pause(b, restLength)
	var used []time.Duration
	for range idleRounds {
		before := server.cpu(b)
		pause(b, idleLength)
		used = append(used, server.cpu(b)-before)
	}
	b.ReportMetric(samples.Milliseconds(samples.Quantile(used, 0.5)), "cpu-ms/10s")
	server.reportMemory(b)
}

// held measures the memory of a server that was started with an existing population and
// listed all of it.
func held(b *testing.B, m *mirror) {
	m.restarted(b)
	server := m.server(b)
	pause(b, restLength)
	server.reportMemory(b)
	b.ReportMetric(usage.MiB(b, string(server), usage.Peak), "peak-MiB")
}

// process is the id of a running process.
type process string

func (m *mirror) server(b *testing.B) process {
	b.Helper()
	return process(m.Env(devcluster.EnvServerPIDs))
}

// cpu returns the processor time of the process.
func (p process) cpu(b *testing.B) time.Duration {
	b.Helper()
	return usage.CPU(b, string(p))
}

// totalCPU returns the processor time of this process and its children.
func totalCPU(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, used := range usage.ByProgram(b) {
		sum += used
	}
	return sum
}

// reportMemory reports the resident memory, and its anonymous part.
func (p process) reportMemory(b *testing.B) {
	b.Helper()
	b.ReportMetric(usage.MiB(b, string(p), usage.Resident), "rss-MiB")
	b.ReportMetric(usage.MiB(b, string(p), usage.Anonymous), "anon-MiB")
}
