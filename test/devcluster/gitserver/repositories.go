// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitserver answers Git clients over smart HTTP and SSH, from bare
// repositories in a folder, by running the real git. A push to a repository that does
// not exist makes it.
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

// errBadName says that a path cannot be that of a repository.
var errBadName = errors.New("not the path of a repository: want NAME.git, with folders before it if need be")

// namePattern is the path of a repository below the root: each part begins with a
// letter or a digit, so none of them is "..".
var namePattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*/)*[A-Za-z0-9][A-Za-z0-9._-]*\.git$`)

// settings are set in every repository that is made.
var settings = [][2]string{
	{"http.receivepack", "true"},
	{"uploadpack.allowFilter", "true"},
	{"uploadpack.allowAnySHA1InWant", "true"},
	// A clean-up after a push would go on in the background, after the server's end
	// and in the middle of what somebody measures.
	{"receive.autogc", "false"},
}

// Repositories are the bare repositories in a folder.
type Repositories struct {
	root   string
	making sync.Mutex
}

// NewRepositories returns the repositories in the folder root, which it makes if need
// be.
func NewRepositories(root string) (*Repositories, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("finding the folder of the repositories: %w", err)
	}
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of the repositories: %w", err)
	}
	return &Repositories{root: absolute}, nil
}

// Ensure makes the repository called name, with main as its default branch, unless it
// is there. Nobody sees a repository that is half made.
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
		return fmt.Errorf("making repository %s: %w", name, err)
	}
	if err := os.Rename(unfinished, folder); err != nil {
		return fmt.Errorf("putting repository %s in place: %w", name, err)
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

// initialize makes a bare repository with the settings in folder.
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

// exists reports whether a repository's folder is there.
func exists(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// runGit runs git; an error carries what it complains about.
func runGit(ctx context.Context, arguments ...string) error {
	out, err := exec.CommandContext(ctx, "git", arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", arguments[0], err, out)
	}
	return nil
}
