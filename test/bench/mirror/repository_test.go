// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// refInterval is the interval at which the branch is polled. It is the precision of all
// measured times, and polling uses about one percent of a processor.
const refInterval = time.Millisecond

// repository reads the bare repository of the Git server.
type repository struct {
	folder string
	// catalog is a running git cat-file, which returns the content of objects.
	catalog struct {
		ask    io.Writer
		answer *bufio.Reader
	}
}

// open opens the repository, which must exist.
func (m *mirror) open(b *testing.B) *repository {
	b.Helper()
	r := &repository{folder: m.repository}
	command := exec.CommandContext(b.Context(), "git", "-C", r.folder, "cat-file", "--batch")
	ask, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	answer, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	r.catalog.ask, r.catalog.answer = ask, bufio.NewReader(answer)
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = ask.Close()
		_ = command.Wait() // the benchmark's context stops it, too
	})
	return r
}

// tip returns the commit of the main branch, or "" if it does not exist.
func (r *repository) tip() string {
	content, err := os.ReadFile(filepath.Join(r.folder, "refs", "heads", branchName))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// moved waits until the branch differs from a commit, and returns the new commit and the time.
func (r *repository) moved(ctx context.Context, from string) (tip string, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ticker := time.NewTicker(refInterval)
	defer ticker.Stop()
	for {
		if tip := r.tip(); tip != from && tip != "" {
			return tip, time.Now(), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", time.Time{}, fmt.Errorf("failed to wait for a push: %w", context.Cause(ctx))
		}
	}
}

// content returns the file at a path of a commit, or nil if it does not exist.
func (r *repository) content(commit, path string) ([]byte, error) {
	if _, err := fmt.Fprintf(r.catalog.ask, "%s:%s\n", commit, path); err != nil {
		return nil, fmt.Errorf("failed to write to git cat-file: %w", err)
	}
	line, err := r.catalog.answer.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("failed to read from git cat-file: %w", err)
	}
	fields := strings.Fields(line)
	if fields[len(fields)-1] == "missing" {
		return nil, nil
	}
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return nil, fmt.Errorf("git cat-file returned %q: %w", line, err)
	}
	content := make([]byte, size+1)
	_, err = io.ReadFull(r.catalog.answer, content)
	return content[:size], err
}

// holds reports whether a commit has the current state of a ConfigMap.
func (r *repository) holds(commit string, object *corev1.ConfigMap) (bool, error) {
	content, err := r.content(commit, filePath(object.Namespace, object.Name))
	return bytes.Contains(content, fmt.Appendf(nil, "write: %q\n", object.Data["write"])), err
}

func filePath(namespace, name string) string {
	return baseFolder + "/core/v1/configmaps/" + namespace + "/" + name + ".yaml"
}

// arrived waits until the branch has the current state of a ConfigMap and returns the time.
// It reads the branch again only after it has moved.
func (r *repository) arrived(ctx context.Context, from string, object *corev1.ConfigMap) (time.Time, error) {
	for {
		tip, at, err := r.moved(ctx, from)
		if err != nil {
			return at, err
		}
		held, err := r.holds(tip, object)
		if held || err != nil {
			return at, err
		}
		from = tip
	}
}

// count returns the number that a git command prints.
func (r *repository) count(b *testing.B, arguments ...string) int {
	b.Helper()
	out := r.git(b, arguments...)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func (r *repository) commits(b *testing.B) int {
	b.Helper()
	return r.count(b, "rev-list", "--count", branchName)
}

// files counts the files of a commit.
func (r *repository) files(b *testing.B, commit string) int {
	b.Helper()
	return strings.Count(r.git(b, "ls-tree", "-r", "--name-only", commit), "\n")
}

func (r *repository) git(b *testing.B, arguments ...string) string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "git", append([]string{"-C", r.folder}, arguments...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		b.Fatalf("git %s: %v: %s", arguments[0], err, exit.Stderr)
	}
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}
