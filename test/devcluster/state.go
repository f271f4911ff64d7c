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

// state is what another process needs to know to go on with a cluster.
type state struct {
	Options  Options      `json:"options"`
	Programs programs.Set `json:"programs"`
	// Kwok is empty unless Pods run.
	Kwok  kwok  `json:"kwok"`
	Ports ports `json:"ports"`
	// Processes are those that run, in the order in which they were started.
	Processes []process.Process `json:"processes"`
	// MadeDir says that the folder was not there before.
	MadeDir bool `json:"madeDir"`
}

// write writes the state to a file, whole or not at all.
func (s *state) write(path string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster's state: %w", err)
	}
	return writeWhole(path, content)
}

// readState reads a state that was written.
func readState(path string) (state, error) {
	var s state
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("no development cluster has been started there: %w", err)
	}
	if err != nil {
		return s, fmt.Errorf("reading the cluster's state: %w", err)
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("decoding the cluster's state: %w", err)
	}
	return s, nil
}

// writeWhole writes a file so that a reader sees all of it or what was there before.
func writeWhole(path string, content []byte) error {
	unfinished := path + ".unfinished"
	if err := os.WriteFile(unfinished, content, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("putting %s in place: %w", path, err)
	}
	return nil
}
