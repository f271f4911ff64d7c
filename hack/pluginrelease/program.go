// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is the plugin built for a platform.
type program struct {
	os, arch, path string
	// version is that of the module: a tag, or a time and a commit, with +dirty if files differ from the commit.
	version string
	// time is that of the commit.
	time time.Time
}

// file returns the name of the program in its archive.
func (p program) file() string {
	if p.os == "windows" {
		return "kubectl-slipstream.exe"
	}
	return "kubectl-slipstream"
}

// build builds the plugin for a platform, such as linux/amd64. Nothing of the machine except the release of Go affects the program. Go
// would take what is empty in the environment from go env -w, which GOENV turns off.
func build(ctx context.Context, source, folder, platform string) (program, error) {
	goos, arch, valid := strings.Cut(platform, "/")
	if !valid {
		return program{}, fmt.Errorf("platform %q: want OS/ARCH", platform)
	}
	p := program{os: goos, arch: arch, path: filepath.Join(folder, goos+"-"+arch)}
	fmt.Fprintf(os.Stderr, "building the plugin for %s ...\n", platform)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", p.path, "./cmd/kubectl-slipstream")
	command.Dir = source
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED=0",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off", "GOENV=off", "GOFLAGS=-trimpath", "GOWORK=off")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return program{}, fmt.Errorf("build the plugin for %s: %w\n%s", platform, err, &output)
	}
	return p, p.inspect()
}

// inspect sets what the build information of the program has.
func (p *program) inspect() error {
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return fmt.Errorf("read the build information: %w", err)
	}
	p.version = info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key != "vcs.time" {
			continue
		}
		if p.time, err = time.Parse(time.RFC3339, setting.Value); err != nil {
			return fmt.Errorf("read the time of the commit: %w", err)
		}
	}
	if p.time.IsZero() {
		return errors.New("the source is not in a Git work tree with a commit, from which the archives take their version and time")
	}
	return nil
}
