// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitserver serves bare repositories in a folder to Git clients over smart HTTP and
// SSH, by running the real git. A push to a missing repository
// creates it.
package gitserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
)

// errBadName is returned for a path that cannot be that of a repository.
var errBadName = errors.New("not the path of a repository: want NAME.git or FOLDER/NAME.git")

// namePattern is the path of a repository below the root: each part begins with a
// letter or a digit, so none of them is "..".
var namePattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*/)*[A-Za-z0-9][A-Za-z0-9._-]*\.git$`)

// settings are set in every new repository.
var settings = [][2]string{
	{"http.receivepack", "true"},
	{"uploadpack.allowFilter", "true"},
	{"uploadpack.allowAnySHA1InWant", "true"},
	// A clean-up after a push would continue in the background, after the server has ended
	// and during measurements.
	{"receive.autogc", "false"},
}

// Repositories are the bare repositories in a folder.
type Repositories struct {
	root   string
	making sync.Mutex
}

// NewRepositories returns the repositories in the folder root, which it creates if
// necessary.
func NewRepositories(root string) (*Repositories, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("failed to find the folder of the repositories: %w", err)
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return nil, fmt.Errorf("failed to create the folder of the repositories: %w", err)
	}
	return &Repositories{root: absolute}, nil
}

// Ensure creates the repository called name, with main as its default branch, unless it
// exists. A repository becomes visible only when it is complete.
func (r *Repositories) Ensure(ctx context.Context, name string) error {
	folder, err := r.folder(name)
	if err != nil {
		return err
	}
	r.making.Lock()
	defer r.making.Unlock()
	if exists(folder) {
		return nil
	}
	unfinished := folder + ".unfinished"
	if err := initialize(ctx, unfinished); err != nil {
		return fmt.Errorf("failed to create repository %s: %w", name, err)
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return fmt.Errorf("failed to rename the new repository %s: %w", name, err)
	}
	return nil
}

// folder returns the folder of the repository called name.
func (r *Repositories) folder(name string) (string, error) {
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("%q: %w", name, errBadName)
	}
	return filepath.Join(r.root, filepath.FromSlash(name)), nil
}

// initialize creates a bare repository with the settings in folder.
func initialize(ctx context.Context, folder string) error {
	if err := runGit(ctx, "init", "--quiet", "--bare", "--initial-branch=main", folder); err != nil {
		return err
	}
	for _, setting := range settings {
		if err := runGit(ctx, "--git-dir", folder, "config", setting[0], setting[1]); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether a repository's folder exists.
func exists(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// runGit runs git; an error contains its output.
func runGit(ctx context.Context, arguments ...string) error {
	out, err := exec.CommandContext(ctx, "git", arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", arguments[0], err, out)
	}
	return nil
}
