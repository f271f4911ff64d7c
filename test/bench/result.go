// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
)

// prefix is the prefix of result lines and of the names of benchmark functions.
const prefix = "Benchmark"

// result is the result of one benchmark.
type result struct {
	// name is without "Benchmark" and the number of processors.
	name    string
	metrics []metric
}

// metric is one value with its unit.
type metric struct {
	unit  string
	value float64
}

// parse reads the results from the output of go test. It ignores other lines.
func parse(output io.Reader) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		// A name, the number of runs, and pairs of value and unit.
		if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], prefix) {
			continue
		}
		metrics, err := parseMetrics(fields[2:])
		if err != nil {
			return nil, fmt.Errorf("failed to read the result of %s: %w", fields[0], err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(fields[0], prefix), processors())
		results = append(results, result{name: name, metrics: metrics})
	}
	return results, lines.Err()
}

// processors matches the suffix that go test adds to the names of benchmarks.
func processors() string {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return "-" + strconv.Itoa(n)
	}
	return ""
}

func parseMetrics(fields []string) ([]metric, error) {
	var metrics []metric
	for i := 0; i < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, metric{unit: fields[i+1], value: value})
	}
	return metrics, nil
}
