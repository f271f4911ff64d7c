// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gogit pushes changes with a work tree of go-git, for comparison with the mirror, which has none: it clones a
// branch, writes files, adds each, commits and pushes. It reads the changes as JSON, an object of content by path, and
// prints the total time in nanoseconds, and the part of it to write and add the files. It is a separate module, because
// go-git's work trees need a dozen modules that are not needed otherwise.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gogit URL FOLDER <changes.json")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(url, folder string) error {
	var changes map[string]string
	if err := json.NewDecoder(os.Stdin).Decode(&changes); err != nil {
		return fmt.Errorf("failed to read the changes: %w", err)
	}
	repository, err := git.PlainClone(folder, false, &git.CloneOptions{URL: url})
	if err != nil {
		return fmt.Errorf("clone: %w", err)
	}
	start := time.Now()
	added, err := commit(repository, folder, changes)
	if err != nil {
		return err
	}
	if err := repository.Push(&git.PushOptions{}); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	_, err = fmt.Println(time.Since(start).Nanoseconds(), added.Nanoseconds())
	return err
}

// commit writes and adds the files one by one, as for separate changes, and returns the time it took.
func commit(repository *git.Repository, folder string, changes map[string]string) (time.Duration, error) {
	tree, err := repository.Worktree()
	if err != nil {
		return 0, fmt.Errorf("failed to open the work tree: %w", err)
	}
	start := time.Now()
	for path, content := range changes {
		if err := os.WriteFile(filepath.Join(folder, path), []byte(content), 0o600); err != nil {
			return 0, fmt.Errorf("failed to write a file: %w", err)
		}
		if _, err := tree.Add(path); err != nil {
			return 0, fmt.Errorf("failed to add a file: %w", err)
		}
	}
	added := time.Since(start)
	who := &object.Signature{Name: "bench", Email: "bench@example.com", When: time.Unix(1700000000, 0)}
	if _, err := tree.Commit("change\n", &git.CommitOptions{Author: who}); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	return added, nil
}
