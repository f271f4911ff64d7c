// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bare reads a bare repository while others push to its main branch.
package bare

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
)

// Branch is the branch that is read.
const Branch = "main"

// refInterval is the interval at which the branch is polled. It is the precision of all
// measured times, and polling uses about one percent of a processor.
const refInterval = time.Millisecond

// Repository reads a bare repository of the Git server.
type Repository struct {
	Folder string
	// objects is nil unless Open created the repository.
	objects *catFile
}

// catFile is a running git cat-file, which returns the content of the objects whose names it reads.
type catFile struct {
	names    io.Writer
	contents *bufio.Reader
}

// Open opens the repository in a folder, which must exist, to read its files.
func Open(b testing.TB, folder string) *Repository {
	b.Helper()
	command := exec.CommandContext(b.Context(), "git", "-C", folder, "cat-file", "--batch")
	names, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	contents, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = names.Close()
		_ = command.Wait() // the benchmark's context stops it, too
	})
	return &Repository{Folder: folder, objects: &catFile{names: names, contents: bufio.NewReader(contents)}}
}

// Tip returns the commit of the main branch, or "" if it does not exist.
func (r *Repository) Tip() string {
	content, err := os.ReadFile(filepath.Join(r.Folder, "refs", "heads", Branch))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// Moved waits until the branch differs from a commit, and returns the new commit and the time.
func (r *Repository) Moved(ctx context.Context, from string) (tip string, at time.Time, err error) {
	ticker := time.NewTicker(refInterval)
	defer ticker.Stop()
	for {
		if tip := r.Tip(); tip != from && tip != "" {
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
func (r *Repository) content(commit, path string) ([]byte, error) {
	if _, err := fmt.Fprintf(r.objects.names, "%s:%s\n", commit, path); err != nil {
		return nil, fmt.Errorf("failed to write to git cat-file: %w", err)
	}
	line, err := r.objects.contents.ReadString('\n')
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
	_, err = io.ReadFull(r.objects.contents, content)
	return content[:size], err
}

// Holds reports whether the file at a path of a commit contains a text.
func (r *Repository) Holds(commit, path, text string) (bool, error) {
	content, err := r.content(commit, path)
	return bytes.Contains(content, []byte(text)), err
}

// Arrived waits until the file at a path of the branch contains a text, and returns the time.
// It reads the branch again only after it has moved.
func (r *Repository) Arrived(ctx context.Context, from, path, text string) (time.Time, error) {
	for {
		tip, at, err := r.Moved(ctx, from)
		if err != nil {
			return at, err
		}
		held, err := r.Holds(tip, path, text)
		if held || err != nil {
			return at, err
		}
		from = tip
	}
}

// Commits counts the commits of the branch.
func (r *Repository) Commits(b testing.TB) int {
	b.Helper()
	out := r.Git(b, "rev-list", "--count", Branch)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// Files counts the files of a commit.
func (r *Repository) Files(b testing.TB, commit string) int {
	b.Helper()
	return strings.Count(r.Git(b, "ls-tree", "-r", "--name-only", commit), "\n")
}

// Git runs a git command in the repository and returns what it prints.
func (r *Repository) Git(b testing.TB, arguments ...string) string {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), "git", append([]string{"-C", r.Folder}, arguments...)...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		b.Fatalf("git %s: %v: %s", arguments[0], err, exit.Stderr)
	}
	if err != nil {
		b.Fatal(err)
	}
	return string(out)
}
