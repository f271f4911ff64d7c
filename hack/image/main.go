// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command image builds the container images of the server and of the plugin, which serves the page, each from the program and the
// certificates of public authorities only, for several architectures, without a daemon. The same commit and the same release of Go give
// the same digests. It also writes a software bill of materials for each program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// settings are the values of the flags.
type settings struct {
	source   string
	version  string
	output   string
	arches   string
	images   string
	push     string
	built    string
	sbomOnly bool
	untagged bool
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
	flag.StringVar(&s.version, "version", "", "the version that the programs must have; any, if empty")
	flag.StringVar(&s.output, "output", "../../bin/image", "folder for the images and the bills of materials")
	flag.StringVar(&s.images, "images", allNames(), "images to build, with commas between")
	flag.StringVar(&s.arches, "arches", "amd64,arm64", "architectures, with commas between")
	flag.StringVar(&s.push, "push", "",
		"REPOSITORY:TAG to push the server's image to, and REPOSITORY-dashboard:TAG that of the page, with the credentials that docker or "+
			"podman have stored; nothing is pushed if empty")
	flag.StringVar(&s.built, "built", "", "output of an earlier run, to push it without building anything")
	flag.BoolVar(&s.untagged, "untagged", false, "push by digest only, and write no tag")
	flag.BoolVar(&s.sbomOnly, "sbom", false, "write the bills of materials only")
	flag.Parse()
	return s
}

// run builds all programs before it writes anything to the output, and writes everything before it pushes anything.
func run(ctx context.Context, s settings) error {
	chosen, err := choose(s.images)
	if err != nil {
		return err
	}
	if err := checkPush(s.push); err != nil {
		return err
	}
	if s.built != "" {
		return pushBuilt(ctx, s, chosen)
	}
	scratch, err := os.MkdirTemp("", "slipstream-image-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // The machine also removes temporary folders.
	var releases []*release
	for _, each := range chosen {
		built, err := newRelease(ctx, s, each, scratch)
		if err != nil {
			return err
		}
		releases = append(releases, built)
	}
	for _, each := range releases {
		if err := each.write(s.output); err != nil {
			return err
		}
	}
	if s.push == "" || s.sbomOnly {
		return nil
	}
	return pushAll(ctx, releases, s)
}

// pushBuilt pushes what an earlier run has written.
func pushBuilt(ctx context.Context, s settings, chosen []product) error {
	if s.push == "" {
		return errors.New("-built needs -push")
	}
	var releases []*release
	for _, each := range chosen {
		written, err := readRelease(each, s.built)
		if err != nil {
			return err
		}
		releases = append(releases, written)
	}
	return pushAll(ctx, releases, s)
}

func pushAll(ctx context.Context, releases []*release, s settings) error {
	for _, each := range releases {
		if err := each.push(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
