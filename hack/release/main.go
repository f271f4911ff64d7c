// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release writes what is published of a version, besides the archives of the plugin, into the folder of a release: the images as
// archives, the chart and the manifest for installations without Helm, both with the images pinned by digest, the release notes, the
// checksums, and the SLSA provenance. The same commit and the same releases of Go and Helm give the same files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// settings are the values of the flags.
type settings struct {
	source, images, output, version, helm, builder string
	// partial says how less than a whole release was built.
	partial string
	// predicateOf is a file with a statement, whose predicate is printed.
	predicateOf string
	// check compares a release that was built before, instead of building one.
	check bool
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
	flag.StringVar(&s.source, "source", ".", "folder of the repository")
	flag.StringVar(&s.images, "images", "bin/image", "output of make image")
	flag.StringVar(&s.output, "output", "dist", "folder of the release")
	flag.StringVar(&s.version, "version", "", "the tag of the commit, such as v1.2.3")
	flag.StringVar(&s.helm, "helm", "helm", "the program helm")
	flag.StringVar(&s.builder, "builder", localBuilder, "URI of who builds, in the provenance")
	flag.StringVar(&s.partial, "partial", "", "how less than a whole release was built, in the provenance")
	flag.StringVar(&s.predicateOf, "predicate-of", "", "print only the predicate of the statement in this file")
	flag.BoolVar(&s.check, "check", false, "only check a release that was built before, and print the digests of its images")
	flag.Parse()
	return s
}

func run(ctx context.Context, s settings) error {
	if s.predicateOf != "" {
		return printPredicate(s.predicateOf)
	}
	if s.check {
		images, err := check(ctx, s)
		for _, each := range images {
			fmt.Println(each.name + "=" + each.digest)
		}
		return err
	}
	from, err := readCommit(ctx, s.source)
	if err != nil {
		return err
	}
	published, err := writeImages(s.images, s.output, from.time)
	if err != nil {
		return err
	}
	if err := writeChart(ctx, s, from.time, published); err != nil {
		return err
	}
	if err := writeNotes(s); err != nil {
		return err
	}
	if err := writeSums(s.output); err != nil {
		return err
	}
	return writeProvenance(ctx, s, from, published)
}

// write writes a file of the release.
func (s settings) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(s.output, name), content, 0o644)
}
