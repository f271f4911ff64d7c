// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

const (
	// historyWarmUp is the duration of the writes before each burst, in which every object is changed: the server then knows the content of
	// all files, and what it does once after its start is over.
	historyWarmUp = 5 * time.Second
	historyRounds = 3
)

// BenchmarkMirrorHistory measures what the history costs the mirror: the CPU time of the server for each change, with the history and without
// it, in alternating bursts. No installation is without the history, so the second server is built from changed source.
func BenchmarkMirrorHistory(b *testing.B) {
	with, without, chosen := historyPrograms(b)
	s := newTestCluster(b, devcluster.Options{ServerProgram: chosen(with)})
	p := newPopulation(s.core)
	m := s.newMirror(b, "shop")
	p.Grow(b, sustainedObjects)
	m.watch(b)
	m.settled(b, p)
	r := m.open(b)
	for b.Loop() {
		costs := map[string]*burst{with: {}, without: {}}
		for range historyRounds {
			for _, program := range []string{with, without} {
				m.stop(b)
				chosen(program)
				m.start(b)
				p.burst(b, historyWarmUp, func(u burst) time.Time { return u.arrived(b, r) })
				m.settled(b, p)
				server := m.server(b)
				before := server.cpu(b)
				measured := p.burst(b, sustainedLength, func(u burst) time.Time { return u.arrived(b, r) })
				measured.server = server.cpu(b) - before
				costs[program].add(measured)
			}
		}
		recorded, plain := costs[with], costs[without]
		b.ReportMetric(recorded.cost(recorded.server), "with-ms/change")
		b.ReportMetric(plain.cost(plain.server), "without-ms/change")
		b.ReportMetric(recorded.cost(recorded.server)/plain.cost(plain.server), "with/without")
	}
	b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
}

// historyPrograms builds the server and one without the history. choose selects the program that a start of the server runs, and returns the
// path that starts it.
func historyPrograms(b *testing.B) (with, without string, choose func(program string) string) {
	b.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		b.Fatal(err)
	}
	if with, err = programs.Product(b.Context(), root, "cmd/slipstream"); err != nil {
		b.Fatal(err)
	}
	without, err = programs.Variant(b.Context(), root, "cmd/slipstream", b.TempDir(), programs.Replacement{
		File: "pkg/mirror/mirror.go", Old: "config := m.config\n", New: "config := m.config\n\tconfig.History, config.Files = nil, nil\n",
	})
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	starter, chosen := filepath.Join(folder, "slipstream"), filepath.Join(folder, "chosen")
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	write(starter, fmt.Sprintf("#!/bin/sh\nexec \"$(cat %s)\" \"$@\"\n", chosen))
	return with, without, func(program string) string {
		write(chosen, program)
		return starter
	}
}
