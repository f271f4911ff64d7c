// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rights checks that the chart's roles grant the server exactly the permissions that it needs: that no request in the recorded test
// clusters was denied, and that each permission was needed by at least one. With -denied, it checks only the first.
//
//	go run ./test/rights [-denied] FOLDER
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

// manifests are the rendered chart with default values, and with all permissions that it can grant.
var manifests = []string{"artifacts/install.yaml", "test/devcluster/install.yaml"}

func main() {
	deniedOnly := flag.Bool("denied", false, "do not check that each permission was needed")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/rights [-denied] FOLDER")
		os.Exit(2)
	}
	faults, err := run(flag.Arg(0), *deniedOnly)
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

func run(folder string, deniedOnly bool) (faults []string, err error) {
	records, err := rights.Load(folder)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("no records of clusters in %s", folder)
	}
	var given []right
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("failed to read the roles: %w", err)
		}
		more, err := rightsOf(string(content))
		if err != nil {
			return nil, fmt.Errorf("failed to read the roles of %s: %w", path, err)
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
	if faults = denied(records); !deniedOnly {
		faults = append(faults, unused(verdicts)...)
	}
	return faults, nil
}
