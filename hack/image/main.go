// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image builds the container image of the server from the program and the certificates of public authorities
// only, for several architectures, without a daemon. The same commit and the same release of Go give the same digest. It
// also writes a software bill of materials for each program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// settings are the values of the flags.
type settings struct {
	source   string
	output   string
	arches   string
	push     string
	sbomOnly bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parse())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.StringVar(&s.source, "source", "../..", "folder of the repository")
	flag.StringVar(&s.output, "output", "../../bin/image", "folder for the image and the bills of materials")
	flag.StringVar(&s.arches, "arches", "amd64,arm64", "architectures, with commas between")
	flag.StringVar(&s.push, "push", "",
		"REPOSITORY:TAG to push to, with the credentials that docker or podman have stored; nothing is pushed if empty")
	flag.BoolVar(&s.sbomOnly, "sbom", false, "write the bills of materials only")
	flag.Parse()
	return s
}

// run writes everything to a temporary folder before any of it is moved to the output.
func run(ctx context.Context, s settings) error {
	if err := checkPush(s.push); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-image-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // The machine also removes temporary folders.
	programs, err := buildAll(ctx, s.source, scratch, strings.Split(s.arches, ","))
	if err != nil {
		return err
	}
	if s.sbomOnly {
		return writeBOMs(s.output, programs)
	}
	release, err := newRelease(programs)
	if err != nil {
		return err
	}
	if err := release.write(s.output); err != nil {
		return err
	}
	if s.push != "" {
		return release.push(ctx, s.push)
	}
	return nil
}
