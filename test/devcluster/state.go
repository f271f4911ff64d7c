// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/configbutler/slipstream/test/devcluster/process"
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// state is what another process needs to manage a running cluster.
type state struct {
	Options  Options      `json:"options"`
	Programs programs.Set `json:"programs"`
	// Kwok is empty unless Pods run.
	Kwok  kwok  `json:"kwok"`
	Ports ports `json:"ports"`
	// Processes are the running processes, in the order in which they were started.
	Processes []process.Process `json:"processes"`
	// MadeDir is true if Start created the folder.
	MadeDir bool `json:"madeDir"`
}

// write writes the state to a file atomically.
func (s *state) write(path string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("failed to encode the cluster's state: %w", err)
	}
	return writeWhole(path, content)
}

// readState reads the state from a file.
func readState(path string) (state, error) {
	var s state
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("no development cluster was started in the folder: %w", err)
	}
	if err != nil {
		return s, fmt.Errorf("failed to read the cluster's state: %w", err)
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("failed to decode the cluster's state: %w", err)
	}
	return s, nil
}

// writeWhole writes a file atomically: readers see the old or the new content.
func writeWhole(path string, content []byte) error {
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, content, 0o600); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("failed to replace %s: %w", path, err)
	}
	return nil
}
