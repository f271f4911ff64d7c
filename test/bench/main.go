// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench runs the benchmarks and prints a table of the results with targets, followed by all results.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// timeout is the timeout of the benchmarks of one folder, including compilation.
const timeout = "60m"

// everyBenchmark is the expression that matches all benchmarks.
const everyBenchmark = "."

// errFailed is returned if the check does not accept a value, or has none.
var errFailed = errors.New("a figure is worse than what is accepted for its target, or is missing")

// settings are the values of the flags.
type settings struct {
	only    string
	bench   string
	objects int
	// simulated is the number of objects of the simulated source.
	simulated int
	raw       string
	check     bool
}

func main() {
	var s settings
	flag.StringVar(&s.only, "only", "",
		"folder of test/bench to run: gitrepo, storage, history, attribution, catalogs, environments, pipelines, page, scale, mirror, replicas or peers; all if empty")
	flag.StringVar(&s.bench, "bench", everyBenchmark, "regular expression of the benchmarks to run, as in go test")
	flag.IntVar(&s.objects, "objects", 20_000, "number of objects in the mirror's largest population")
	flag.IntVar(&s.simulated, "simulated", 100_000, "number of objects in the mirror's simulated source, at most 1000000")
	flag.StringVar(&s.raw, "raw", "bin/bench.txt", "file for the output of go test, in the format of benchstat")
	flag.BoolVar(&s.check, "check", false, "run only benchmarks with targets, and fail if a figure is worse than what is accepted for its target")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.run(ctx, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs the benchmarks, shows their progress, and prints the table.
func (s *settings) run(ctx context.Context, out, progress io.Writer) error {
	chosen, err := s.folders()
	if err != nil {
		return err
	}
	var raw bytes.Buffer
	var failure error
	for _, each := range chosen {
		failure = errors.Join(failure, s.goTest(ctx, io.MultiWriter(&raw, progress), "./test/bench/"+each.name, each.arguments...))
	}
	if err := save(s.raw, raw.Bytes()); err != nil {
		return err
	}
	results, err := parse(&raw)
	if err != nil {
		return err
	}
	verdicts := judge(results, targets)
	if err := printTable(out, verdicts, results); err != nil {
		return err
	}
	if s.check && failed(verdicts, s.only == "" && s.bench == everyBenchmark) {
		failure = errors.Join(failure, errFailed)
	}
	return failure
}

// folder is a folder with benchmarks.
type folder struct {
	name string
	// arguments are those of its own flags.
	arguments []string
}

// folders returns the folders of the selected benchmarks.
func (s *settings) folders() ([]folder, error) {
	all := []folder{
		{name: "gitrepo"}, {name: "storage"}, {name: "history"}, {name: "attribution"}, {name: "catalogs"}, {name: "environments"},
		{name: "pipelines"}, {name: "page"}, {name: "scale"},
		{name: "mirror", arguments: []string{"-objects", strconv.Itoa(s.objects), "-simulated", strconv.Itoa(s.simulated)}}, {name: "replicas"},
		{name: "peers"},
	}
	if s.only == "" {
		return all, nil
	}
	for _, each := range all {
		if each.name == s.only {
			return []folder{each}, nil
		}
	}
	return nil, fmt.Errorf("-only=%q must be gitrepo, storage, history, attribution, catalogs, environments, pipelines, page, scale, mirror, replicas or peers", s.only)
}

// goTest runs the benchmarks of one folder. The arguments are those of its own flags.
func (s *settings) goTest(ctx context.Context, out io.Writer, folder string, arguments ...string) error {
	bench := s.bench
	if s.check && bench == everyBenchmark {
		bench = measuring(targets)
	}
	all := append([]string{"test", "-run", "^$", "-bench", bench, "-timeout", timeout, folder}, arguments...)
	command := exec.CommandContext(ctx, "go", all...)
	// Without it, the programs of a development cluster collect less garbage than those of users, with which the benchmarks compare.
	command.Env = append(os.Environ(), "GOGC=100")
	// On an interrupt, benchmarks stop the processes that they started.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		return fmt.Errorf("failed to run the benchmarks of %s: %w", folder, err)
	}
	return nil
}

func save(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("failed to create the folder of the raw figures: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("failed to save the raw figures: %w", err)
	}
	return nil
}
