// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds answers where the definitions of custom resources that people use come from:
// out of the Go modules in which their makers publish them, at pinned versions.
package crds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Definitions returns the files that hold the definitions. The first call on a machine
// downloads the modules, some 60 MB, into the cache of the go command, which checks them
// against the checksum database; the sums pinned here hold where that is switched off. No
// module is compiled, and none gets into a go.mod. The folder is an empty one to run in.
func Definitions(ctx context.Context, folder string) ([]string, error) {
	folders, err := download(ctx, folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, module := range modules {
		for _, file := range module.files {
			path := filepath.Join(folders[module.path], filepath.FromSlash(module.folder), file+".yaml")
			if _, err := os.Stat(path); err != nil {
				return nil, fmt.Errorf("looking for a definition of %s: %w", module.path, err)
			}
			found = append(found, path)
		}
	}
	return found, nil
}

// downloaded is what the go command says about a module.
type downloaded struct {
	Path, Version, Sum, Dir, Error string
}

// download returns the folders of the modules, by path.
func download(ctx context.Context, folder string) (map[string]string, error) {
	arguments := []string{"mod", "download", "-json"}
	for _, module := range modules {
		arguments = append(arguments, module.path+"@"+module.version)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	// Outside every module, so that none's go.mod has a say.
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, failure := command.Output()
	answers, err := parse(out)
	if err != nil {
		return nil, errors.Join(err, failure)
	}
	folders := map[string]string{}
	for _, module := range modules {
		answer := answers[module.path]
		if answer.Dir == "" || answer.Sum != module.sum {
			return nil, fmt.Errorf("downloading %s@%s: sum %q, want %q: %s%s: %w", module.path, module.version, answer.Sum, module.sum,
				answer.Error, complaint.String(), errors.Join(errMismatch, failure))
		}
		folders[module.path] = answer.Dir
	}
	return folders, nil
}

// errMismatch says that a module is not there as it is pinned.
var errMismatch = errors.New("the module cannot be had as it is pinned")

// parse reads the go command's answers, one document a module.
func parse(out []byte) (map[string]downloaded, error) {
	answers := map[string]downloaded{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var answer downloaded
		err := decoder.Decode(&answer)
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading what the go command says: %w", err)
		}
		answers[answer.Path] = answer
	}
}
