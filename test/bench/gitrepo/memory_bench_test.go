// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"testing"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// holdURL is the environment variable with the repository whose branch a process holds in memory.
const holdURL = "SLIPSTREAM_BENCH_HOLD"

func TestMain(m *testing.M) {
	if url := os.Getenv(holdURL); url != "" {
		if err := hold(context.Background(), url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

// hold prints the resident memory of this process in KiB while it holds a branch.
func hold(ctx context.Context, url string) error {
	remote := &gitrepo.Remote{URL: url}
	defer remote.Close()
	branch, err := gitrepo.Load(ctx, remote, branchName, gitrepo.Options{})
	if err != nil {
		return err
	}
	debug.FreeOSMemory()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, resident, _ := bytes.Cut(status, []byte("VmRSS:"))
	resident, _, _ = bytes.Cut(resident, []byte("kB"))
	_, err = fmt.Println(string(bytes.TrimSpace(resident)), countFiles(branch))
	return err
}

// BenchmarkMemory reports the resident memory of a process that only holds a branch of 50 000 files.
func BenchmarkMemory(b *testing.B) {
	paths := manifests(50000)
	url := newOrigin(b, paths, 0).copy().serve().url
	var resident, files int
	for b.Loop() {
		command := exec.CommandContext(b.Context(), os.Args[0])
		command.Env, command.Stderr = append(environment(), holdURL+"="+url), os.Stderr
		output, err := command.Output()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Sscan(string(output), &resident, &files); err != nil || files != len(paths) {
			b.Fatalf("%q: %v", output, err)
		}
	}
	b.ReportMetric(float64(resident)/1024, "rss-MiB")
}
