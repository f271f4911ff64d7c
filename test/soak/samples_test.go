// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// warmUp is how long a process fills its memory before its samples count: the store keeps the history of twice its compaction interval.
	warmUp = 2 * bolt.DefaultCompactionInterval
	// growth bounds the median of the last third of the samples, as a multiple of that of the first third.
	growth = 1.3
	// sampleLimit is the timeout of the requests for a sample. A garbage collection on a busy machine takes long.
	sampleLimit = 2 * time.Minute
	// minSamples is the number of samples without which nothing is compared.
	minSamples = 9
)

// measures are what is sampled, with the growth that is allowed in addition: caches and pools that fill slowly.
var measures = []struct {
	name  string
	extra float64
	of    func(sample) float64
}{
	{"memory (MiB)", 24, func(s sample) float64 { return s.memory }},
	{"heap (MiB)", 16, func(s sample) float64 { return s.heap }},
	{"goroutines", 60, func(s sample) float64 { return s.goroutines }},
	{"descriptors", 20, func(s sample) float64 { return s.descriptors }},
}

// sample is what a process of the server uses at rest.
type sample struct {
	pid string
	// age is since the first sample of the process.
	age time.Duration
	// memory is the anonymous resident memory in MiB. It lacks the pages of the store's file, which the system can drop.
	memory float64
	// heap is what is in use after a garbage collection, in MiB.
	heap                    float64
	goroutines, descriptors float64
}

// samples are all samples, in order.
type samples struct {
	all   []sample
	first map[string]time.Time
}

// take adds a sample.
func (s *samples) take(t *testing.T, cluster *soak) {
	t.Helper()
	pid := cluster.Env(devcluster.EnvServerPIDs)
	if s.first[pid].IsZero() {
		s.first[pid] = time.Now()
	}
	taken := sample{pid: pid, age: time.Since(s.first[pid])}
	var err error
	if taken.memory, err = anonymousMemory(pid); err != nil {
		t.Error(err)
	}
	mirrortest.Eventually(t, "a sample of the server", func(ctx context.Context) error { return taken.read(ctx, cluster) })
	s.all = append(s.all, taken)
	t.Logf("at rest: process %s, %.1f MiB, heap %.1f MiB, %.0f goroutines, %.0f descriptors", pid, taken.memory, taken.heap, taken.goroutines,
		taken.descriptors)
}

// read reads what the server measures itself.
func (s *sample) read(ctx context.Context, cluster *soak) error {
	ctx, cancel := context.WithTimeout(ctx, sampleLimit)
	defer cancel()
	if _, err := cluster.ReadServer(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return err
	}
	for name, to := range map[string]*float64{
		"go_memstats_heap_alloc_bytes": &s.heap, "go_goroutines": &s.goroutines, "process_open_fds": &s.descriptors,
	} {
		var err error
		if *to, err = cluster.Counted(ctx, name); err != nil {
			return err
		}
	}
	s.heap /= 1 << 20
	return nil
}

// anonymousMemory reads the anonymous resident memory of a process, in MiB.
func anonymousMemory(pid string) (float64, error) {
	file, err := os.Open("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "RssAnon:"); found {
			kibibytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kibibytes / 1024, err
		}
	}
	return 0, fmt.Errorf("no RssAnon of process %s", pid)
}

// longest returns the samples after the warm-up of the process with the most of them.
func (s *samples) longest() (longest []sample) {
	of := map[string][]sample{}
	for _, each := range s.all {
		if each.age >= warmUp {
			of[each.pid] = append(of[each.pid], each)
		}
	}
	for _, each := range of {
		if len(each) > len(longest) {
			longest = each
		}
	}
	return longest
}

// check fails the test if a process needs more and more of something. It returns lines for the report.
func (s *samples) check(t *testing.T) (lines []string) {
	t.Helper()
	counted := s.longest()
	for _, measure := range measures {
		if len(counted) < minSamples {
			lines = append(lines, fmt.Sprintf("%s\tnot compared: %d samples", measure.name, len(counted)))
			continue
		}
		first, last := median(counted[:len(counted)/3], measure.of), median(counted[len(counted)-len(counted)/3:], measure.of)
		lines = append(lines, fmt.Sprintf("%s\t%.1f\t%.1f\tof %d samples", measure.name, first, last, len(counted)))
		if last > growth*first+measure.extra {
			t.Errorf("%s of the server grew from %.1f to %.1f", measure.name, first, last)
		}
	}
	return lines
}

func median(of []sample, measure func(sample) float64) float64 {
	var values []float64
	for _, each := range of {
		values = append(values, measure(each))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
