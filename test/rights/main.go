// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rights judges whether the chart's roles of the server are exactly enough: whether the tests, whose clusters note what the
// server's account asked for, had nothing denied and something use of every right.
//
//	go run ./test/rights FOLDER
package main

import (
	"fmt"
	"os"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

// manifests are the chart as people apply it, and with all rights that it can give.
var manifests = []string{"artifacts/install.yaml", "test/devcluster/install.yaml"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/rights FOLDER")
		os.Exit(2)
	}
	faults, err := run(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, fault := range faults {
		fmt.Fprintln(os.Stderr, fault)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}

func run(folder string) (faults []string, err error) {
	records, err := rights.Load(folder)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("no cluster has noted anything in %s", folder)
	}
	var given []right
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the roles: %w", err)
		}
		more, err := rightsOf(string(content))
		if err != nil {
			return nil, fmt.Errorf("reading the roles of %s: %w", path, err)
		}
		given = append(given, more...)
	}
	verdicts := judge(given, records)
	if err := printTable(os.Stdout, verdicts); err != nil {
		return nil, err
	}
	if err := printDenied(os.Stdout, records); err != nil {
		return nil, err
	}
	return append(denied(records), unused(verdicts)...), nil
}
