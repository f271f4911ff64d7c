// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pluginrelease builds what is published of the kubectl plugin for a version: an archive for each platform, their checksums, and
// the manifest for krew. The same commit and the same release of Go give the same files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// settings are the values of the flags.
type settings struct {
	source, output, platforms, url string
	// version is the version that the programs must have; any, if it is empty.
	version string
	// allowDirty builds files that differ from the commit.
	allowDirty bool
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
	flag.StringVar(&s.output, "output", "bin/plugin", "folder for the files")
	flag.StringVar(&s.version, "version", "", "the version that the programs must have; any, if empty")
	flag.StringVar(&s.platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"platforms, with commas between")
	flag.StringVar(&s.url, "url", "https://github.com/configbutler/slipstream/releases/download", "URL of the releases, below which each version has a folder")
	flag.BoolVar(&s.allowDirty, "allow-dirty", false, "build also if files differ from the commit, to try it")
	flag.Parse()
	return s
}

// run builds all programs before it writes anything.
func run(ctx context.Context, s settings) error {
	license, err := os.ReadFile(filepath.Join(s.source, licenseFile))
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "slipstream-plugin-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // The machine also removes temporary folders.
	var programs []program
	for _, text := range strings.Split(s.platforms, ",") {
		built, err := build(ctx, s.source, scratch, text)
		if err != nil {
			return err
		}
		if s.version != "" && built.version != s.version {
			return fmt.Errorf("go has stamped the plugin with the version %s, want %s: does the commit have another tag, or do files differ from it?", built.version, s.version)
		}
		programs = append(programs, built)
	}
	if version := programs[0].version; strings.Contains(version, "+dirty") && !s.allowDirty {
		return fmt.Errorf("files differ from the commit, so the version is %s: commit them, or give -allow-dirty", version)
	}
	if err := os.MkdirAll(s.output, 0o755); err != nil {
		return err
	}
	var archives []archive
	for _, each := range programs {
		packed, err := pack(each, license)
		if err != nil {
			return err
		}
		archives = append(archives, packed)
	}
	if err := refuseOthers(s.output, archives); err != nil {
		return err
	}
	return write(s, programs[0].version, archives)
}

// refuseOthers returns an error if a folder has archives that are not to be written: all of a folder is published.
func refuseOthers(folder string, archives []archive) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		wanted := slices.ContainsFunc(archives, func(a archive) bool { return a.name == entry.Name() })
		if strings.HasPrefix(entry.Name(), "kubectl-slipstream_") && !wanted {
			return fmt.Errorf("%s is of another release: remove it, or choose another folder", filepath.Join(folder, entry.Name()))
		}
	}
	return nil
}

// write writes the archives, their checksums in the format of sha256sum, and the manifest.
func write(s settings, version string, archives []archive) error {
	var sums strings.Builder
	for _, each := range archives {
		if err := os.WriteFile(filepath.Join(s.output, each.name), each.content, 0o644); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&sums, "%s  %s\n", each.sum(), each.name) // A Builder has no errors.
	}
	manifest, err := krewManifest(s.url, version, archives)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"SHA256SUMS": []byte(sums.String()), "slipstream.yaml": manifest} {
		if err := os.WriteFile(filepath.Join(s.output, name), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "wrote %d archives of %s, SHA256SUMS and slipstream.yaml to %s\n", len(archives), version, s.output)
	return nil
}
