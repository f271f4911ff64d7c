// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crds downloads widely used CustomResourceDefinitions from the Go modules of their projects, in pinned
// versions.
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

// Definitions returns the paths of the files with the definitions. The first call on a machine downloads the modules,
// about 60 MB, into the module cache. The go command checks them against the checksum database, and this package
// against its own sums. No module is compiled or added to a go.mod. The folder must be empty; the go command runs in
// it.
func Definitions(ctx context.Context, folder string) ([]string, error) {
	return definitions(ctx, folder, modules)
}

// Followers returns the paths of the definitions with which Flux and Argo CD follow a repository. It is like Definitions, and downloads
// about 26 MB.
func Followers(ctx context.Context, folder string) ([]string, error) {
	return definitions(ctx, folder, followers)
}

func definitions(ctx context.Context, folder string, modules []module) ([]string, error) {
	folders, err := download(ctx, folder, modules)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, module := range modules {
		for _, file := range module.files {
			path := filepath.Join(folders[module.path], filepath.FromSlash(module.folder), file+".yaml")
			if _, err := os.Stat(path); err != nil {
				return nil, fmt.Errorf("failed to find a definition of %s: %w", module.path, err)
			}
			found = append(found, path)
		}
	}
	return found, nil
}

// downloaded is the output of the go command about a module.
type downloaded struct {
	Path, Version, Sum, Dir, Error string
}

// download returns the folders of the modules, by path.
func download(ctx context.Context, folder string, modules []module) (map[string]string, error) {
	arguments := []string{"mod", "download", "-json"}
	for _, module := range modules {
		arguments = append(arguments, module.path+"@"+module.version)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	// The folder is outside of all modules, so that no go.mod affects the versions.
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, failure := command.Output()
	results, err := parse(out)
	if err != nil {
		return nil, errors.Join(err, failure)
	}
	folders := map[string]string{}
	for _, module := range modules {
		result := results[module.path]
		if result.Dir == "" || result.Sum != module.sum {
			return nil, fmt.Errorf("failed to download %s@%s: sum %q, want %q: %s%s: %w", module.path, module.version, result.Sum, module.sum,
				result.Error, stderr.String(), errors.Join(errMismatch, failure))
		}
		folders[module.path] = result.Dir
	}
	return folders, nil
}

// errMismatch is the error about a module that differs from the pinned one.
var errMismatch = errors.New("the pinned module is not available")

// parse decodes the output of the go command, one document for each module.
func parse(out []byte) (map[string]downloaded, error) {
	results := map[string]downloaded{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var result downloaded
		err := decoder.Decode(&result)
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return nil, fmt.Errorf("failed to decode the output of the go command: %w", err)
		}
		results[result.Path] = result
	}
}
